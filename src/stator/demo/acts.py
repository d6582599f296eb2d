"""The acts of the demo, in order, and what the terminal shows while they run."""

from __future__ import annotations

import statistics
import time
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

from stator.demo import recount
from stator.demo.app import ARCHIVE, VIEWS
from stator.demo.fleet import (
    Router,
    Test,
    fleet,
    router,
    routers_of_isp,
    tests_between,
    tests_of_router,
)
from stator.demo.history import History, isp_of, router_ids, write_history
from stator.demo.live import HOT, LiveFleet, RefusedWrites
from stator.demo.processes import ServerProcess, WorkerProcess, rebuild_views, wait_until
from stator.demo.story import Checked, Event, PatternSeen, Sample, Story
from stator.design.lint.check import check
from stator.design.plan.plan import Plan
from stator.design.table_settings import TableSettings
from stator.model.quantities import about_dollars, plural, size
from stator.pipeline.bulk.load.load import LoadOptions, LoadProgress, load
from stator.pipeline.bulk.targets import BulkTarget
from stator.tables.connection import connect
from stator.tables.db import Db
from stator.tables.shards.shard_change import ShardChange

_MODELS: Final = ("AX-1", "AX-2", "Nimbus", "Pico")
_CITIES: Final = ("Aarhus", "Bergen", "Cork", "Delft", "Essen", "Faro")
_EXPIRING_SHARE: Final = 0.005


@dataclass(frozen=True, slots=True)
class Scale:
    tests: int = 1_000_000
    routers: int = 2_000
    seconds: float = 10.0
    per_second: float = 400.0
    workers: int = 2


class Demo:
    def __init__(self, scale: Scale, folder: Path, console: Console) -> None:
        self.scale = scale
        self.folder = folder
        self.console = console
        self.story = Story(routers=scale.routers)
        self._began = time.monotonic()
        self._live_began = 0.0
        self._workers: list[WorkerProcess] = []
        self._gone_handled = 0
        self._partitions: Counter[str] = Counter()
        self._refused = RefusedWrites()
        self._refused_then = 0
        """The refused writes when the hot feed was last spread, at ``_spread_at``."""
        self._hot_since = self._spread_at = 0.0

    def run(self) -> Story:
        server = ServerProcess(self.folder / "data")
        # The feed has a server of its own, which enforces throughput. The bulk load would take
        # minutes there: a new table takes 4,000 writes a second.
        feed_server = ServerProcess(self.folder / "feed", "enforced")
        try:
            self._act("A design from its access patterns", self._design)
            with (
                connect(fleet, server.url, measure=True) as db,
                connect(fleet, feed_server.url, observers=[self._refused]) as feed_db,
            ):
                feed_db.ensure()
                _warm_up(feed_db)
                history = self._act(
                    "A month of history, loaded from Parquet", lambda: self._load(db, server.url)
                )
                self._act(
                    "Summaries of the history, and a stream for what follows",
                    lambda: self._summarise(db, server.url),
                )
                live = LiveFleet(
                    db, feed_db, self.scale.routers, self.scale.per_second, self._spread
                )
                self._partitions = live.written.partitions
                try:
                    self._act(
                        "Live tests, workers, a hot provider, and a kill -9",
                        lambda: self._live(db, server.url, history, live),
                    )
                    self._act("The access patterns, measured", lambda: self._patterns(db, history))
                    self._act(
                        "Everything caught up and recounted",
                        lambda: self._recount(db, server.url, history, live),
                    )
                finally:
                    for worker in self._workers:
                        with suppress(Exception):
                            worker.stop()
        finally:
            server.stop()
            feed_server.stop()
        self.story.seconds = time.monotonic() - self._began
        return self.story

    def _act(self, title: str, act: Callable[[], Any]) -> Any:
        self.console.print(f"\n[bold cyan]{title}[/]")
        began = time.monotonic()
        result = act()
        self.console.print(f"  [dim]{time.monotonic() - began:.1f} s[/]")
        return result

    def _say(self, text: str) -> None:
        self.console.print(f"  {text}")

    # -- the design

    def _design(self) -> None:
        plan = fleet.plan()
        self.story.plan_lines = _plan_lines(plan)
        self.story.dollars_per_month = float(plan.dollars_per_month)
        report = check(fleet)
        self.story.findings = [f"{finding.code} {finding.message}" for finding in report.findings]
        tables = ", ".join(f"{table.name} ({1 + len(table.indexes)} keys)" for table in plan.tables)
        self._say(
            f"{len(plan.patterns)} patterns -> {tables}, about "
            f"[green]{about_dollars(plan.dollars_per_month)}[/] a month on AWS at declared rates"
        )
        self._say(
            f"stator check: {plural(len(report.findings), 'finding')}"
            + "".join(f"\n    {line}" for line in self.story.findings)
        )

    # -- history

    def _load(self, db: Db, url: str) -> History:
        db.ensure()
        now = time.time()
        history = write_history(
            self.folder / "history.parquet", self.scale.tests, self.scale.routers, now
        )
        self.story.parquet_bytes = history.path.stat().st_size
        self._say(
            f"generated {history.tests:,} tests of {history.routers:,} routers, "
            f"{size(self.story.parquet_bytes)}, in {time.time() - now:.1f} s"
        )
        names = router_ids(self.scale.routers)
        db.write_many(
            Router(
                router_id=name,
                isp=isp_of(number),
                model=_MODELS[number % 4],
                city=_CITIES[number % 6],
            )
            for number, name in enumerate(names)
        )
        with (
            BulkTarget.open(url, design=fleet, entity=Test) as target,
            Progress(
                TextColumn("  [cyan]load[/]"),
                BarColumn(40),
                TextColumn("{task.percentage:>3.0f} %"),
                TextColumn("{task.fields[facts]}"),
                TimeRemainingColumn(),
                console=self.console,
                transient=True,
            ) as progress,
        ):
            task = progress.add_task("load", total=1.0, facts="")

            def watch(seen: LoadProgress) -> None:
                rate = seen.counts.written / max(seen.seconds, 0.001)
                progress.update(
                    task,
                    completed=seen.share,
                    facts=f"{seen.counts.written:,} items  {rate:,.0f}/s",
                )

            report = load(
                str(history.path),
                target,
                LoadOptions(journal=self.folder / "load.journal"),
                watch=watch,
            )
        if not report.ok or report.written != history.tests:
            self.story.checks.append(
                Checked("rows of the history loaded", history.tests, report.written)
            )
        self.story.history_tests = report.written
        self.story.load_seconds, self.story.load_units = report.seconds, report.consumed_units
        self._say(
            f"loaded {report.written:,} in {report.seconds:.1f} s: "
            f"[green]{report.written / report.seconds:,.0f}/s[/], {report.consumed_units:,.0f} WCU"
        )
        return history

    def _summarise(self, db: Db, url: str) -> None:
        """Turn on the stream, start the workers, and backfill the views while the workers run."""
        db.ensure(TableSettings(stream="NEW_AND_OLD_IMAGES"))
        self._workers = [
            WorkerProcess(url, self.folder, "latest").begin() for _ in range(self.scale.workers)
        ]
        wait_until(lambda: sum(worker.state.shards for worker in self._workers) >= 4, 60)
        began = time.monotonic()
        with self.console.status(
            "  building the views from the table while the workers keep them up to date"
        ):
            for name, built in rebuild_views(url, [view.name for view in VIEWS]).items():
                self._say(f"{name}: {built['groups']:,} groups from {built['scanned']:,} items")
        self.story.summary_seconds = time.monotonic() - began

    # -- live

    def _live(self, db: Db, url: str, history: History, live: LiveFleet) -> None:
        self._live_began = time.monotonic()
        live.start()
        self._age_out(db, history)
        self._say(
            f"{self.scale.per_second:.0f} tests a second; "
            f"{len(self._workers)} workers share the stream"
        )
        third = self.scale.seconds / 4
        self._watch(live, third)
        live.written.partitions.clear()
        live.is_hot = True
        self._hot_since = self._since()
        self._event(f"{HOT} turns hot")
        self._watch(live, third)
        self._watch(live, third / 2)
        self._event("worker killed with kill -9")
        self._kill(url)
        live.written.partitions.clear()
        self._watch(live, third)
        self.story.heat_after = dict(live.written.partitions)
        self._watch(live, third / 2)
        live.stop()
        self._count_refusals()
        self._say(f"[yellow]refused[/]: {self.story.refusals}")
        newest = live.feed.latest(HOT, 3)
        self._say(
            f"{live.written.tests:,} live tests written; the newest of {HOT}, from old and new "
            "shards: " + ", ".join(f"{each.latency_ms:.0f} ms" for each in newest)
        )

    def _age_out(self, db: Db, history: History) -> None:
        """Let the oldest tests expire: write them again with a TTL that has passed.

        TTL then deletes them, and the stream carries them to the archive.
        """
        over = datetime.now(UTC) - timedelta(seconds=30)
        old = [replace(test, expires=over) for test in history.oldest(self._expiring)]
        db.write_many(old)
        self._event(f"{len(old):,} old tests expire")

    @property
    def _expiring(self) -> int:
        return max(100, round(self.scale.tests * _EXPIRING_SHARE))

    def _kill(self, url: str) -> None:
        victim = self._workers.pop(0)
        self._gone_handled += victim.state.handled
        victim.kill()
        self._say(
            f"[red]killed[/] worker {victim.pid}; a new one takes over its shards when the leases "
            "expire"
        )
        self._workers.append(WorkerProcess(url, self.folder, "latest").begin())

    def _spread(self, change: ShardChange) -> None:
        """Report that a provider's feed has got more shards. A collector calls this."""
        if change.key == HOT and not self.story.spreads:
            self.story.heat_before = dict(self._partitions)
        if change.key == HOT:
            self.story.spreads.append(change.after)
            self._refused_then, self._spread_at = self._refused.count, self._since()
        if change.reason and not self.story.throttle_reason:
            self.story.throttle_reason = change.reason
            self._event("DynamoDB refuses its writes")
            self._say(f"[yellow]throttled[/]: the feed of {change.key}, {change.reason}")
        self._event(f"the feed of {change.key} spread over {change.after} shards")
        self._say(f"[green]spread[/]: the feed of {change.key} over {change.after} shards")

    def _count_refusals(self) -> None:
        """Divide the refused writes into those until the feed was spread, and those since."""
        story, total, now = self.story, self._refused.count, self._since()
        is_spread = bool(story.spreads)
        story.refused_before = self._refused_then if is_spread else total
        story.refused_after = total - story.refused_before
        story.seconds_before = (self._spread_at if is_spread else now) - self._hot_since
        story.seconds_after = now - self._spread_at if is_spread else 0.0

    def _watch(self, live: LiveFleet, seconds: float) -> None:
        """For ``seconds``, record rates and lag every half second while the routers report tests.

        The share of the hottest partition is that of the last half second.
        """
        end = time.monotonic() + seconds
        before: dict[str, int] = dict(live.written.partitions)
        while time.monotonic() < end:
            time.sleep(0.5)
            now = dict(live.written.partitions)
            seen = {name: count - before.get(name, 0) for name, count in now.items()}
            before = now
            total = sum(seen.values()) or 1
            hottest = max(seen.items(), key=lambda entry: entry[1], default=("", 0))
            self._sample(live, hottest[0], hottest[1] / total)

    def _sample(self, live: LiveFleet, hottest: str, share: float) -> None:
        handled = self._gone_handled + sum(worker.state.handled for worker in self._workers)
        known = [worker.state.lag_seconds for worker in self._workers]
        lag = max((each for each in known if each is not None), default=None)
        self.story.samples.append(
            Sample(self._since(), live.written.tests, handled, lag, share, hottest)
        )

    def _event(self, text: str) -> None:
        self.story.events.append(Event(self._since(), text))

    def _since(self) -> float:
        return time.monotonic() - self._live_began

    # -- the patterns

    def _patterns(self, db: Db, history: History) -> None:
        name = router_ids(self.scale.routers)[self.scale.routers // 2]
        day = datetime.fromtimestamp((history.start + history.end) // 2, UTC)
        asked: list[tuple[str, Callable[[], Any]]] = [
            ("tests_of_router", lambda: tests_of_router(name)),
            ("tests_between", lambda: tests_between(name, day, day + timedelta(days=1))),
            ("router", lambda: router(name)),
            ("routers_of_isp", lambda: routers_of_isp(isp_of(63))),
        ]
        plan = fleet.plan()
        returns = {each.name: each.traffic.returns for each in fleet.reads}
        for label, question in asked:
            assert db.meter is not None
            db.meter.by_label.pop(label, None)
            times, items = [], 0
            for _ in range(30):
                began = time.perf_counter()
                items = len(list(db.fetch(question())))
                times.append(time.perf_counter() - began)
            usage = db.meter.by_label[label]
            pattern = plan.pattern(label)
            seen = PatternSeen(
                label,
                f"{pattern.operation} {pattern.index or pattern.table}",
                30,
                items,
                statistics.median(times) * 1000,
                float(pattern.units_per_call),
                round(returns[label] or 0),
                round(usage.read_units / 30, 2),
            )
            self.story.patterns.append(seen)
            self._say(
                f"{label:16} {seen.request:14} {items:>4} items  {seen.milliseconds:6.2f} ms  "
                f"{seen.measured_units:g} RCU measured, {seen.planned_units:g} planned "
                f"for {plural(seen.planned_items, 'item')}"
            )

    # -- the end

    def _recount(self, db: Db, url: str, history: History, live: LiveFleet) -> None:
        expired = self._expiring
        wait_until(
            lambda: (
                len(recount.unique_ids(self.folder, ARCHIVE)) >= expired and self._is_caught_up()
            ),
            60,
        )
        # Nothing writes tests any more; only the summaries have to catch up.
        with ThreadPoolExecutor(1) as pool:
            counting = pool.submit(recount.count_table, db)
            for worker in self._workers:
                worker.tell_to_stop()
            for worker in self._workers:
                worker.stop()
            # A last worker, which exits by itself once it has handled everything that was written.
            self._workers = [WorkerProcess(url, self.folder, "latest", catch_up=True).begin()]
            self._workers[0].wait()
            self._workers = []
            counted = counting.result()
        self.story.alerts = len(live.written.alerts)
        self.story.archived = len(recount.unique_ids(self.folder, ARCHIVE))
        kept = recount.kept_hours(db)
        self.story.summaries, self.story.hours = recount.summaries(kept)
        expected = {
            "tests": history.tests - expired + live.written.tests,
            "alerts": live.written.alerts,
            "expired": expired,
        }
        for check_ in recount.compare(db, counted, kept, self.folder, expected):
            self.story.checks.append(check_)
            mark = "[green]agrees[/]" if check_.is_right else f"[red]differs: {check_.found:,}[/]"
            self._say(f"{check_.what:46} {check_.expected:>12,}  {mark}")

    def _is_caught_up(self) -> bool:
        lags = [worker.state.lag_seconds for worker in self._workers]
        return all(lag is not None and lag < 1.0 for lag in lags)


def _warm_up(feed_db: Db) -> None:
    """Give the feed's table 20 partitions, so that a hot key can be spread over several of them."""
    warm = {"ReadUnitsPerSecond": 12_000, "WriteUnitsPerSecond": 20_000}
    table = feed_db.context.schema.place.table
    feed_db.call("UpdateTable", {"TableName": table, "WarmThroughput": warm})


def _plan_lines(plan: Plan) -> list[str]:
    lines = []
    for entity in plan.entities:
        lines.append(f"{entity.name} in {entity.table}")
        lines += [f"  {key.name:8} {key.template}" for key in entity.keys]
    for pattern in plan.patterns:
        lines.append(f"{pattern.name}: {pattern.operation} {pattern.index or pattern.table}")
        lines += [f"  {pattern.key_condition}"] if pattern.key_condition else []
    return lines
