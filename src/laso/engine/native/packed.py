"""Large tuples of arrays in compiled code: one pointer instead of hundreds of values.

Numba passes a named tuple by value, an array of it as seven numbers or more. The arguments of one
kernel are some fifty arrays, so that most of the code before optimisation, and most of the time
to compile it, would go into passing them on. A ``Packed`` tuple is a pointer into the numbers that
describe the arguments of a call (see ``calls``); its fields are loaded where they are used. Nothing
writes there while the call lasts, which LLVM is told: so it loads a field once for a whole loop.

Importing this module imports Numba.
"""

from __future__ import annotations

import hashlib
from typing import Any

from llvmlite import ir
from numba import types as of
from numba.core import cgutils
from numba.core.datamodel import models
from numba.core.typing.templates import AttributeTemplate
from numba.extending import infer_getattr, lower_getattr_generic, register_model
from numba.np.arrayobj import populate_array

MIN_FIELDS = 5  # smaller tuples are cheap to pass by value, and can be unpacked
POINTER = ir.IntType(64).as_pointer()


class Packed(of.Type):  # type: ignore[misc]
    """The type of a named tuple whose fields stay where the caller wrote them."""

    def __init__(self, kind: Any) -> None:
        self.kind = kind
        # Numba writes the names of all arguments' types into the symbol of a function, and the
        # symbol into the code of each call.
        digest = hashlib.sha256(str(kind).encode()).hexdigest()[:16]
        super().__init__(name=f"Packed({kind.instance_class.__name__}_{digest})")


@register_model(Packed)
class PackedModel(models.PrimitiveModel):  # type: ignore[misc]
    """A packed tuple is a pointer to 64-bit numbers."""

    def __init__(self, manager: Any, kind: Any) -> None:
        super().__init__(manager, kind, POINTER)


@infer_getattr
class PackedAttributes(AttributeTemplate):  # type: ignore[misc]
    """A packed tuple has the fields of the named tuple."""

    key = Packed

    def generic_resolve(self, packed: Any, name: str) -> Any:
        """Returns the type of a field, or None."""
        fields = packed.kind.fields
        return packed.kind.types[fields.index(name)] if name in fields else None


@lower_getattr_generic(Packed)  # type: ignore[untyped-decorator]
def _field(context: Any, builder: Any, packed: Any, pointer: Any, name: str) -> Any:
    index = packed.kind.fields.index(name)
    offset = sum(width(kind) for kind in packed.kind.types[:index])
    return loaded(context, builder, packed.kind.types[index], pointer, offset)


def is_large(kind: Any) -> bool:
    """Returns whether a tuple of this type is passed packed."""
    return isinstance(kind, of.NamedTuple) and len(kind.fields) >= MIN_FIELDS


def passed(kind: Any) -> Any:
    """Returns the type under which an entry point receives an argument of this type."""
    return Packed(kind) if is_large(kind) else kind


def width(kind: Any) -> int:
    """Returns how many numbers describe a value of this type (see ``calls``)."""
    if isinstance(kind, Packed):
        return width(kind.kind)
    if isinstance(kind, of.BaseTuple):
        return sum(map(width, kind.types))
    return 1 + 2 * kind.ndim if isinstance(kind, of.Array) else 1


def loaded(context: Any, builder: Any, kind: Any, pointer: Any, offset: int) -> Any:
    """Returns the value of this type that the numbers from an offset on describe."""
    if isinstance(kind, Packed):
        return builder.gep(pointer, [context.get_constant(of.intp, offset)])
    if isinstance(kind, of.BaseTuple):
        values = []
        for part in kind.types:
            values.append(loaded(context, builder, part, pointer, offset))
            offset += width(part)
        return context.make_tuple(builder, kind, values)
    place = builder.gep(pointer, [context.get_constant(of.intp, offset)])
    if isinstance(kind, of.Array):
        return builder.call(_array_loader(context, builder.module, kind), [place])
    number = _number(builder, place, 0)
    if isinstance(kind, of.Float):
        bits = builder.bitcast(number, context.get_value_type(of.float64))
        return context.cast(builder, bits, of.float64, kind)
    return context.cast(builder, number, of.int64, kind)


def _array_loader(context: Any, module: Any, kind: Any) -> Any:
    """Returns a function of the module that makes an array of the numbers at a place.

    It is one for all arrays of a type, so that the code of a use is short; LLVM inlines it.
    """
    name = f"laso.array.{context.get_abi_sizeof(context.get_data_type(kind.dtype))}.{kind.ndim}"
    signature = ir.FunctionType(context.get_value_type(kind), [POINTER])
    name = f"{name}.{signature.return_type.elements[4].pointee}"
    if name in module.globals:
        return module.globals[name]
    function = ir.Function(module, signature, name)
    function.linkage = "linkonce_odr"
    function.attributes.add("alwaysinline")
    builder = ir.IRBuilder(function.append_basic_block())
    pointer = function.args[0]
    array = context.make_array(kind)(context, builder)
    data = builder.inttoptr(_number(builder, pointer, 0), array.data.type)
    shape = [_number(builder, pointer, 1 + i) for i in range(kind.ndim)]
    strides = [_number(builder, pointer, 1 + kind.ndim + i) for i in range(kind.ndim)]
    size = context.get_abi_sizeof(context.get_data_type(kind.dtype))
    populate_array(array, data, shape, strides, size, None)
    builder.ret(array._getvalue())
    return function


def _number(builder: Any, pointer: Any, index: int) -> Any:
    place = builder.gep(pointer, [ir.Constant(cgutils.intp_t, index)])
    number = builder.load(place)
    number.set_metadata("invariant.load", builder.module.add_metadata([]))
    return number
