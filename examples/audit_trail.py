"""An audit trail: who changed what and when, and proof that nobody has changed the trail.

The patterns: the history of an item, with the item before and after each change; a check of the
whole trail, alone and against a seal.

A worker writes the trail from the stream, so no program can forget it. Each item has a chain of
entries, and an entry has the hash of the one before. A secret that only the worker has makes the
hashes impossible to compute for others. A seal, stored where those who write the table cannot
change it, also proves that no chain was removed.

python examples/audit_trail.py [ADDRESS]
"""

from __future__ import annotations

import sys
from decimal import Decimal

from stator import Db, Design, Entity, Query, connect, find, ident, read
from stator.pipeline import AuditLog, StreamApp, WorkerOptions


class Salary(Entity):
    employee_id: str = ident()
    amount: Decimal
    changed_by: str


@read(rps=10)
def salary(employee_id: str) -> Query[Salary]:
    return find(Salary).where(Salary.employee_id == employee_id)


payroll = Design("payroll", [Salary], [salary])

# In production the secret comes from a secret store that only the worker may read.
trail = AuditLog("salaries", who=Salary.changed_by, secret="only the worker knows this")
app = StreamApp(payroll, "audit")
app.add(trail)


def history(db: Db, employee_id: str) -> list[str]:
    """Return a line for each change of a salary, oldest first."""
    lines = []
    for entry in trail.history(db, Salary, employee_id=employee_id):
        before, after = ((image or {}).get("amount") for image in (entry.before, entry.after))
        lines.append(f"{entry.number}. {entry.kind} by {entry.who}: {before} -> {after}")
    return lines


def main(address: str | None = None) -> None:
    with connect(payroll, address) as db:
        app.ensure(db)
        with app.start(db, WorkerOptions(start="oldest")) as worker:
            db.create(Salary(employee_id="e1", amount=Decimal(4000), changed_by="anna"))
            with db.update(Salary, employee_id="e1") as raised:
                raised.amount = Decimal(4400)
                raised.changed_by = "ben"
            db.create(Salary(employee_id="e2", amount=Decimal(3900), changed_by="anna"))
            worker.catch_up()
            for line in history(db, "e1"):
                print(line)
            print("sound:", trail.verify(db).is_sound)
            seal = trail.seal(db)  # seal.dumps() is the text to store elsewhere

            db.delete(Salary, employee_id="e2")  # nobody signs a deletion: its author is None
            worker.catch_up()
            for line in history(db, "e2"):
                print(line)
            report = trail.verify(db, since=seal)
            print(f"{report.entries} entries in {report.chains} chains; sound: {report.is_sound}")


if __name__ == "__main__":
    main(*sys.argv[1:2])
