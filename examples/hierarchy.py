"""A catalogue of categories: children, subtrees, the path to the root, and moved subtrees.

python examples/hierarchy.py [ADDRESS]
"""

from __future__ import annotations

import sys

from stator import Design, Entity, Query, connect, find, ident, read
from stator.patterns import Tree


class Product(Entity):
    product_id: str = ident()
    category_id: str


class Category(Entity):
    category_id: str = ident()
    name: str


@read(rps=50, returns=20)
def products_in(category_id: str) -> Query[Product]:
    return find(Product).where(Product.category_id == category_id)


catalogue = Design("catalogue", [Product], [products_in])


def main(address: str | None = None) -> None:
    with connect(catalogue, address) as db:
        db.ensure()
        categories = Tree(db, Category, name="categories", order=Category.name)
        categories.add(Category(category_id="all", name="Everything"))
        for identity, name, parent in (
            ("house", "House", "all"),
            ("garden", "Garden", "all"),
            ("lamps", "Lamps", "house"),
            ("desk", "Desk lamps", "lamps"),
        ):
            categories.add(Category(category_id=identity, name=name), parent=parent)
        db.put(Product(product_id="p1", category_id="desk"))
        print([node.entity.name for node in categories.children("all")])
        print([f"{'  ' * node.level}{node.entity.name}" for node in categories.descendants("all")])
        print(" > ".join(node.entity.name for node in categories.path("desk")))
        categories.move("lamps", "garden")
        print(" > ".join(node.entity.name for node in categories.path("desk")))
        assert [node.entity.name for node in categories.ancestors("desk")] == [
            "Everything",
            "Garden",
            "Lamps",
        ]
        deleted = categories.delete("garden")
        print(
            f"{deleted} categories deleted, {categories.count()} left; "
            f"{db.count(products_in('desk'))} product still in a deleted category"
        )


if __name__ == "__main__":
    main(*sys.argv[1:2])
