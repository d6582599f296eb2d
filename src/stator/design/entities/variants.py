"""Variants: subclasses of an entity whose items are items of that entity.

    class Animal(Entity):
        animal_id: str = ident()
        name: str

    class Dog(Animal, variant="dog"):
        breed: str

A design lists ``Animal``. A ``Dog`` is stored as an animal with the attribute ``_class`` = "dog".
Whatever reads animals, by identity or by pattern, returns a Dog for such an item. ``find(Dog)``
finds the dogs only: to the planner it is ``find(Animal)`` with the condition that ``_class`` is
"dog". Patterns may name ``Dog.breed``; an index with it holds only dogs.

The tag is written out in the class, so that the class can be renamed. Variants have one level, and
keys, unique fields and other roles belong to the entity itself. The fields of different variants
may have the same name if they have the same type.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from stator.design.entities.shapes import CLASS_TAG, Choice, Maybe, Scalar, Shape, type_name
from stator.errors import DesignError

VariantFields = Mapping[str, tuple[Shape, str | None]]
"""The shape and the role of each field of a variant, the entity's own fields included."""


def check_variant(cls: type[Any], tag: Any, base: type[Any], *, is_bare: bool) -> None:
    """Raise DesignError unless a class may be a variant. ``base`` is the class ``Entity``.

    ``is_bare`` says that the class declares no key, index, name or version.
    """
    name = cls.__name__
    if not isinstance(tag, str) or not tag:
        raise DesignError(
            f"{name}: variant={tag!r} is not a tag", hint=f'use a text: variant="{name.lower()}"'
        )
    [*entities] = [each for each in cls.__bases__ if issubclass(each, base)]
    if entities != [cls.__bases__[0]] or entities == [base]:
        raise DesignError(
            f"{name} has a variant= but no entity to be a variant of",
            hint=f'name the entity first: class {name}(Animal, variant="{tag}")',
        )
    root: Any = entities[0]
    if getattr(root, CLASS_TAG, None) is not None:
        raise DesignError(
            f"{name} is a variant of {root.__name__}, which is a variant itself",
            hint=f"derive {name} from {root.__root__.__name__}; "
            "put shared fields into a dataclass without Entity",
        )
    if not is_bare:
        raise DesignError(
            f"{name} is a variant of {root.__name__} and cannot have a key, index, name or version "
            "of its own",
            hint=f"declare them on {root.__name__}",
        )


def tag_shape(tags: tuple[str, ...]) -> Shape:
    """Return the shape of ``_class`` for these variants."""
    return Choice(tags, Scalar(str))


def root_fields(
    entity: str, own: Mapping[str, Shape], variants: Mapping[str, VariantFields]
) -> dict[str, Shape]:
    """Return the fields that an entity has because of its variants: the tag and their fields.

    All of them may be absent. Raises DesignError if a field of a variant cannot be added.
    """
    if not variants:
        return {}
    found: dict[str, Shape] = {CLASS_TAG: Maybe(tag_shape(tuple(variants)))}
    for tag, fields in variants.items():
        for name, (shape, role) in fields.items():
            if name in own:
                _check_same(entity, tag, name, shape, own[name])
                continue
            if role is not None:
                raise DesignError(
                    f"{name} of variant {tag!r} is {role}(), which a variant cannot declare",
                    hint=f"declare the field in {entity}",
                )
            optional = shape if isinstance(shape, Maybe) else Maybe(shape)
            if name in found:
                _check_same(entity, tag, name, optional, found[name])
            found[name] = optional
    return found


def _check_same(entity: str, tag: str, name: str, shape: Shape, other: Shape) -> None:
    if shape != other:
        raise DesignError(
            f"{entity}: {name} is a {type_name(other)}, "
            f"and a {type_name(shape)} in variant {tag!r}",
            hint="use one type, or two field names",
        )
