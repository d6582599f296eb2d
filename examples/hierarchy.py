"""A hierarchy per tenant: children, subtrees, the path to the root, moved and deleted subtrees.

Each tenant has a tree of its own. A tenant's nodes are in partitions that carry the name of the
tree, so no call on one tree reads or changes a node of another, even if identities are the same.

python examples/hierarchy.py [ADDRESS]
"""

from __future__ import annotations

import sys

from stator import Db, Design, Entity, Query, connect, find, ident, read
from stator.patterns import Tree


class Product(Entity):
    tenant_id: str = ident()
    product_id: str = ident()
    category_id: str


class Category(Entity):
    category_id: str = ident()
    name: str


@read(rps=50, returns=20)
def products_in(tenant_id: str, category_id: str) -> Query[Product]:
    return find(Product).where(Product.tenant_id == tenant_id, Product.category_id == category_id)


catalogue = Design("catalogue", [Product], [products_in])


def categories_of(db: Db, tenant_id: str) -> Tree[Db, Category]:
    return Tree(db, Category, name=f"categories-{tenant_id}", order=Category.name)


def main(address: str | None = None) -> None:
    with connect(catalogue, address) as db:
        db.ensure()
        acme, zenith = categories_of(db, "acme"), categories_of(db, "zenith")
        for categories in (acme, zenith):
            categories.add(Category(category_id="all", name="Everything"))
        for identity, name, parent in (
            ("house", "House", "all"),
            ("garden", "Garden", "all"),
            ("lamps", "Lamps", "house"),
            ("desk", "Desk lamps", "lamps"),
        ):
            acme.add(Category(category_id=identity, name=name), parent=parent)
        db.put(Product(tenant_id="acme", product_id="p1", category_id="desk"))

        print([node.entity.name for node in acme.children("all")])
        for node in acme.descendants("all"):
            print(f"{'  ' * node.level}{node.entity.name}")
        print(" > ".join(node.entity.name for node in acme.path("desk")))
        acme.move("lamps", "garden")
        print(" > ".join(node.entity.name for node in acme.path("desk")))

        deleted = acme.delete("garden")
        print(
            f"{deleted} categories deleted, {acme.count()} left; "
            f"{db.count(products_in('acme', 'desk'))} product still in a deleted category"
        )
        print(f"zenith has {zenith.count()} category of its own")


if __name__ == "__main__":
    main(*sys.argv[1:2])
