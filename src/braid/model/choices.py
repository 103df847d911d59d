"""Things to choose from by name, each with parameters of its own: `lazy-disk theta_r=0.5`."""

from __future__ import annotations

from dataclasses import dataclass, fields
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from braid.model.checks import require_known
from braid.model.errors import BraidError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

Choice = TypeVar("Choice")


@dataclass(frozen=True, slots=True)
class Choices(Generic[Choice]):
    """Dataclasses by name; `what` they are called in errors.

    Their fields are the parameters, but for those that hold what one remembers, whose metadata
    says so.
    """

    what: str
    makers: Mapping[str, Callable[..., Choice]]

    def parameters_of(self, name: str) -> dict[str, Any]:
        """The parameters of a choice with their defaults."""
        require_known(self.what, name, self.makers)
        default: Any = self.makers[name]()
        return {
            setting.name: getattr(default, setting.name)
            for setting in fields(default)
            if not setting.metadata.get("memory")
        }

    def make(self, name: str, **parameters: Any) -> Choice:
        """The choice of some name, with its defaults where no parameter is given."""
        known = self.parameters_of(name)
        for parameter in parameters:
            require_known(f"parameter of {name}", parameter, known)
        return self.makers[name](**parameters)

    def parse(
        self, text: str, instead: Mapping[str, Any] = MappingProxyType({}), **others: Any
    ) -> Choice:
        """Read a name and some parameters; `others` go before their defaults.

        So does what stands `instead`, where the choice has such parameters.
        """
        name, *given = (text.split() or [""]) if isinstance(text, str) else [text]
        known = self.parameters_of(name)
        parameters = {each: value for each, value in instead.items() if each in known} | others
        for each in given:
            parameter, _, value = each.partition("=")
            require_known(f"parameter of {name}", parameter, known)
            parameters[parameter] = _value(each, value, type(known[parameter]))
        return self.make(name, **parameters)


def _value(text: str, value: str, kind: type) -> Any:
    """A parameter's value, of the type that its default has."""
    try:
        if kind is bool:
            return {"true": True, "false": False}[value.lower()]
        return value if kind is str else _number(value)
    except (KeyError, ValueError):
        wanted = {bool: "true or false", str: "a word"}.get(kind, "a number")
        raise BraidError(
            f"cannot read {text!r}", hint=f"write the parameter's name, '=', and {wanted}"
        ) from None


def _number(text: str) -> int | float:
    number = float(text)
    return int(number) if number.is_integer() else number
