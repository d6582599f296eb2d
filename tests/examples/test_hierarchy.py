"""The hierarchy: a tenant's tree is its own."""

from __future__ import annotations

from hierarchy import Category, catalogue, categories_of

from tests.targets import Target


def test_tenants_do_not_meet_even_with_the_same_identities(target: Target) -> None:
    db = target.connect(catalogue)
    acme, zenith = categories_of(db, "acme"), categories_of(db, "zenith")
    for tree, name in ((acme, "Acme's"), (zenith, "Zenith's")):
        tree.add(Category(category_id="all", name=name))
        tree.add(Category(category_id="lamps", name=f"{name} lamps"), parent="all")
    zenith.add(Category(category_id="desk", name="Desk lamps"), parent="lamps")

    assert [node.entity.name for node in acme.descendants("all")] == ["Acme's lamps"]
    assert [node.entity.name for node in zenith.path("desk")] == [
        "Zenith's",
        "Zenith's lamps",
        "Desk lamps",
    ]
    assert acme.get("desk") is None
    assert acme.delete("all") == 2
    assert (acme.count(), zenith.count()) == (0, 3)
