"""A file that has been run in, what other files may know of it out."""

from __future__ import annotations

from collections.abc import Iterator

from torchcopylint.flow import tape as t
from torchcopylint.flow.files.bodies import Home, body_of, class_body_of, home_of
from torchcopylint.flow.files.world import World
from torchcopylint.flow.graphs import gathered
from torchcopylint.flow.interprocedural.returned import ReturnedPart, types_of
from torchcopylint.flow.interprocedural.summaries import Summary, summarise
from torchcopylint.flow.model import ONE_OF, Kind, Object
from torchcopylint.flow.program import apart, hollow, run_over, ties
from torchcopylint.flow.references import AppliedReference, ClassReference, FunctionReference
from torchcopylint.flow.running.machine import Machine
from torchcopylint.flow.tape import Dotted
from torchcopylint.flow.values.outside import Base, ClassFacts, Foreign, FunctionFacts, ModuleFacts, Name

LONGEST_TEXT = 200
"""A longer text is no constant that anybody asks for by its value."""
_CONSTANTS = (bool, int, float, complex, str)


def exported(world: World) -> ModuleFacts:
    """What a file that has been run defines. It stays valid without the file."""
    path = world.outside.path
    names = dict(_names(world))
    home = home_of(world.program, path, world.imports, _bound_by_functions(world))
    classes = {info.number: _class(world, info, home) for info in world.own_classes}
    wanted = {name.function for name in names.values() if name.path == path and name.function >= 0}
    wanted |= {number for facts in classes.values() for number in facts.methods.values()}
    return ModuleFacts(
        path=path,
        names=names,
        functions={number: _function(world, number, home) for number in sorted(wanted) if number in world.machines},
        classes=classes,
        stars=tuple((str(star), isinstance(star, Foreign)) for star in world.star_imports),
        public=_public(world.machines[0]),
    )


def _names(world: World) -> Iterator[tuple[str, Name]]:
    """The names of the module as they are when it has been run; what functions bind anew is not known."""
    m = world.machines[0]
    again = _bound_by_functions(world)
    for name in sorted(m.unit.bound - again):
        cell = m.state.cell(name)
        if cell is None or cell.plain or len(cell.refs) > 1 or name.startswith("%"):
            continue
        if cell.refs:
            yield name, Name(cell.kind, obj=global_type(world, m.state.object(cell.refs[0])))
        elif isinstance(cell.const, Dotted):
            yield name, Name(Kind.IMPORTED, str(cell.const), isinstance(cell.const, Foreign))
        elif isinstance(cell.const, FunctionReference):
            path, number = _origin(world, cell.const.unit)
            yield name, Name(Kind.FUNCTION, path=path, function=number)
        elif isinstance(cell.const, ClassReference):
            path, number = _class_origin(world, cell.const.number)
            yield name, Name(Kind.CLASS, path=path, class_number=number)
        elif isinstance(cell.const, AppliedReference):
            path, number = _class_origin(world, cell.const.number)
            yield name, Name(Kind.FUNCTION, path=path, class_number=number)
        elif isinstance(cell.const, _CONSTANTS) and len(str(cell.const)) <= LONGEST_TEXT:
            yield name, Name(cell.kind, const=cell.const)
        elif cell.kind is not Kind.NONE:
            # `None` stands for what is put there later.
            yield name, Name(cell.kind)


def _bound_by_functions(world: World) -> frozenset[str]:
    """The names that some function declares to be global and binds."""
    return frozenset(
        event.name
        for unit in world.own_units[1:]
        if unit.kind == "function"
        for event in world.index(unit).of(t.Bind)
        if event.name not in unit.bound and not event.name.startswith("%")
    )


def _origin(world: World, number: int) -> tuple[str, int]:
    if not world.is_own(number):
        return world.outside.function_origin(number)
    return world.guests.origins.get(number, (world.outside.path, number))


def _class_origin(world: World, number: int) -> tuple[str, int]:
    if not world.is_own_class(number):
        return world.outside.class_origin(number)
    return world.guests.classes.get(number, (world.outside.path, number))


def global_type(world: World, obj: Object) -> Object:
    """An object without what only its own file can make sense of, its class named so that every file knows it."""
    number = world.local_class(obj.type)
    if number is not None:
        path, own = _class_origin(world, number)
        obj = obj._replace(type=f"file#{path}#{own}")
    if len(types := types_of(obj)) > 1:
        told = tuple(global_type(world, Object(type=one)).type for one in types)
        obj = obj._replace(config=(*(one for one in obj.config if one[0] != ONE_OF), (ONE_OF, told)))
    return obj._replace(shares=(), graph=frozenset(), saved=frozenset(), text="", site=-1, owner="")


def _function(world: World, number: int, home: Home) -> FunctionFacts:
    m = world.machines[number]
    unit = m.unit
    summary = world.summary(number)
    if summary is None or m.writes or _has_places(summary):
        # Others must know where that stands.
        summary = summarise(m, world.outside.path)
    summary = world.with_told(number, _global_summary(world, summary))
    told = tuple(one._replace(summary=_global_summary(world, one.summary)) for one in summary.told)
    return FunctionFacts(
        name=unit.name,
        qualname=unit.qualname,
        owner=unit.owner,
        parameters=tuple(parameter._replace(annotation=None) for parameter in unit.parameters),
        decorators=world.decorators(number),
        summary=summary._replace(told=told),
        body=body_of(home, unit, _decorators(world, number)),
        uses=world.index(unit).recorded_fields if unit.owner >= 0 else None,
        roles=world.roles_of(unit),
        gathers=gathered.handed_out(m),
    )


def _has_places(summary: Summary) -> bool:
    """Whether a summary says where in this file something is done, beside writes."""
    return bool(summary.kept or summary.added or summary.replaced or summary.left or summary.carries)


def _global_summary(world: World, summary: Summary) -> Summary:
    """A summary as other files know it. Which of its own functions it returns, is told by numbers of this file."""
    parts = tuple(_part(world, part) for part in summary.parts)
    once = (summary.once[0], global_type(world, summary.once[1])) if summary.once is not None else None
    return summary._replace(result=global_type(world, summary.result), parts=parts, function=-1, once=once)


def _decorators(world: World, number: int) -> tuple[str, ...]:
    """The decorators of a function of the file by their full names."""
    return tuple(str(world.resolve_name(written)) for written in world.decorators(number))


def _part(world: World, part: ReturnedPart) -> ReturnedPart:
    """A part of what a function returns, as others know it: its own functions have numbers of this file, and what a
    method's object lends is told of there."""
    inner = tuple(_part(world, one) for one in part.inner)
    return part._replace(result=global_type(world, part.result), inner=inner, lent="", function=-1)


def _class(world: World, info: t.ClassInfo, home: Home) -> ClassFacts:
    decorators = {number: _decorators(world, number) for number in info.methods.values()}
    plain, of_autograd = world.class_kind(info.number)[0] is Kind.INSTANCE, world.is_function_class(info.number)
    units = [world.program.units[number] for number in info.methods.values()]
    later = (store for unit in units if unit.name != "__init__" for store in world.index(unit).of(t.StoreAttribute))
    return ClassFacts(
        name=info.name,
        bases=tuple(_base(world, number, name) for number, name in world.bases(info.number)),
        methods={name: number for name, number in info.methods.items() if number in world.machines},
        fields={name: global_type(world, obj) for name, obj in sorted(world.fields(info.number).items())},
        registered=dict(world.registered(info.number)),
        reads=frozenset(e.name for unit in units for e in world.index(unit).of(t.Attribute)),
        hollow=hollow.sets_none(world, info.number),
        apart=apart.fields(world, info.number),
        body=class_body_of(home, info, decorators, of_autograd=of_autograd) if plain else None,
        ties=tuple(tie[:4] for tie in ties.of(world, info.number) if not tie.when),
        makers=world.makers(info.number),
        sets=frozenset(store.name for store in later if not store.augmented),
        run_over=run_over.methods_of(world, info),
        switched=world.switched(info.number),
    )


def _base(world: World, number: int | None, name: str) -> Base:
    if number is not None:
        path, own = _class_origin(world, number)
        return Base(name, False, path, own)
    return Base(str(name), isinstance(name, Foreign))


def _public(m: Machine) -> frozenset[str] | None:
    """The names in `__all__`, if it is one list of texts."""
    bound = [event for event in m.index.of(t.Bind) if event.name == "__all__"]
    made = m.unit.definitions[bound[0].value] if len(bound) == 1 else None
    if not isinstance(made, t.Make) or made.kind not in ("list", "tuple") or any(made.stars):
        return None
    items = [m.unit.definitions[register] for register in made.items]
    texts = [item.value for item in items if isinstance(item, t.Const) and isinstance(item.value, str)]
    changed = any(isinstance(e, t.Load | t.Augment) and getattr(e, "name", "") == "__all__" for e in m.unit.definitions)
    return frozenset(texts) if len(texts) == len(items) and not changed else None
