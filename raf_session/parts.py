"""The parts of a message's content, in the shape of OpenAI's chat API."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Annotated, Any, ClassVar, Final, Self, cast

from pydantic import BaseModel, ConfigDict, PlainValidator, Strict, model_validator
from typing_extensions import override

from raf_session.errors import InvalidValueError
from raf_session.frozen import (
    EMPTY,
    FrozenDict,
    freeze,
    freeze_states,
    frozen_dict,
    join_path,
    thaw,
)

__all__ = (
    "AudioPart",
    "ContentPart",
    "FilePart",
    "ImagePart",
    "ReasoningPart",
    "RefusalPart",
    "TextPart",
    "part_from_openai",
)

PART_DEPTH: Final = 3
"""Message, list, part: the level on which a part stands."""


def frozen_object(depth: int) -> PlainValidator:
    """Return the validator of a field that holds an object, on that level, frozen."""

    def validate(value: object) -> FrozenDict[Any]:
        if not isinstance(value, Mapping):
            raise ValueError("an object is expected")  # noqa: TRY004  (pydantic's way)
        items = dict(cast("Mapping[str, object]", value))
        return cast("FrozenDict[Any]", freeze(items, "", depth))

    return PlainValidator(validate)


def _freeze_states(value: object) -> FrozenDict[Any]:
    if not isinstance(value, Mapping):
        raise ValueError("an object is expected")  # noqa: TRY004  (pydantic's way)
    return freeze_states(cast("Mapping[str, object]", value))


FROZEN_STATES: Final = PlainValidator(_freeze_states)
"""The validator of a field that holds values by name, each of its own depth."""

StrictText = Annotated[str, Strict()]
"""A string; bytes are none."""


def refuse_taken(extra: Mapping[str, Any], taken: Iterable[str]) -> None:
    """Raise where `extra` would overwrite a field that has a value of its own.

    Raises:
        InvalidValueError: it names the field.
    """
    for name in taken:
        if name in extra:
            raise InvalidValueError(join_path("extra", name), "the field is declared")


class FrozenModel(BaseModel):
    """A pydantic model that stays as it was made, through every public name."""

    model_config: ClassVar[ConfigDict] = ConfigDict(
        frozen=True,
        extra="forbid",
        defer_build=True,  # what validates is made on first use, not on import
    )

    @override
    def model_copy(
        self, *, update: Mapping[str, Any] | None = None, deep: bool = False
    ) -> Self:
        """Return a copy with some fields replaced; the new values are validated.

        Raises:
            ValidationError: an updated field does not fit.
        """
        given = {name: self.__dict__[name] for name in self.__pydantic_fields_set__}
        return type(self)(**(given | dict(update or {})))

    @override
    @classmethod
    def model_construct(
        cls, _fields_set: set[str] | None = None, **values: Any
    ) -> Self:
        """Validate like the constructor: nothing unfrozen gets in."""
        return cls(**values)

    @override
    def copy(self, **kwargs: Any) -> Self:  # pyright: ignore[reportIncompatibleMethodOverride]
        """Do as `model_copy`, whose name pydantic 1 had this."""
        return self.model_copy(update=kwargs.get("update"))

    @property
    @override
    def model_fields_set(self) -> set[str]:
        """The names of the fields that were given, as a set of the caller's own."""
        return set(self.__pydantic_fields_set__)


_Payload = Annotated[Mapping[str, Any], frozen_object(PART_DEPTH + 1)]
_Extra = Annotated[Mapping[str, Any], frozen_object(PART_DEPTH)]


class ContentPart(FrozenModel):
    """A part of a kind that this library does not type: kept and sent as it came."""

    kind: ClassVar[str | None] = None
    """The only `type` that parts of this class have; `None`: any."""

    payload_name: ClassVar[str] = ""
    """The field that carries what the part is about."""

    type: StrictText | None = None
    """The provider's name for the kind; `None` where it gave none."""

    extra: _Extra = EMPTY
    """Fields of the provider's that this class does not declare, in their order."""

    @model_validator(mode="after")
    def _check_fields(self) -> Self:
        if self.kind is not None and self.type != self.kind:
            raise InvalidValueError("type", f"{self.type!r} is not {self.kind!r}")
        taken = [self.payload_name] if self.payload_name else []
        refuse_taken(self.extra, taken if self.type is None else [*taken, "type"])
        return self

    def wire(self) -> dict[str, Any]:
        """Return the fields as they are sent, with frozen values."""
        wire: dict[str, Any] = {}
        if self.type is not None:
            wire["type"] = self.type
        if self.payload_name:
            wire[self.payload_name] = self.__dict__[self.payload_name]
        wire.update(self.extra)
        return wire

    def to_openai(self) -> dict[str, Any]:
        """Return the part as a plain dict of the caller's own."""
        return cast("dict[str, Any]", thaw(self.wire()))


class TextPart(ContentPart):
    """Text."""

    payload_name: ClassVar[str] = "text"
    kind: ClassVar[str | None] = "text"
    type: StrictText | None = "text"
    text: StrictText
    """The text, any code points, lone surrogates included."""


class ImagePart(ContentPart):
    """An image, by URL or as data."""

    payload_name: ClassVar[str] = "image_url"
    kind: ClassVar[str | None] = "image_url"
    type: StrictText | None = "image_url"
    image_url: _Payload
    """``{"url": ..., "detail": ...}``; the URL may be a ``data:`` one."""


class AudioPart(ContentPart):
    """Sound that the user said."""

    payload_name: ClassVar[str] = "input_audio"
    kind: ClassVar[str | None] = "input_audio"
    type: StrictText | None = "input_audio"
    input_audio: _Payload
    """``{"data": base64, "format": "wav"}``."""


class FilePart(ContentPart):
    """A file, by id or as data."""

    payload_name: ClassVar[str] = "file"
    kind: ClassVar[str | None] = "file"
    type: StrictText | None = "file"
    file: _Payload
    """``{"file_id": ...}`` or ``{"file_data": ..., "filename": ...}``."""


class RefusalPart(ContentPart):
    """What the model said when it refused."""

    payload_name: ClassVar[str] = "refusal"
    kind: ClassVar[str | None] = "refusal"
    type: StrictText | None = "refusal"
    refusal: StrictText
    """The text of the refusal."""


class ReasoningPart(ContentPart):
    """What the model thought before it answered."""

    payload_name: ClassVar[str] = "text"
    kind: ClassVar[str | None] = "reasoning"
    type: StrictText | None = "reasoning"
    text: StrictText
    """The text of the reasoning; a signature stands in `extra`."""


PART_TYPES: Final[Mapping[str, type[ContentPart]]] = {
    "text": TextPart,
    "image_url": ImagePart,
    "input_audio": AudioPart,
    "file": FilePart,
    "refusal": RefusalPart,
    "reasoning": ReasoningPart,
}
"""The class of each typed part, by its ``type``."""

_TEXT_PAYLOADS: Final = frozenset(("text", "refusal"))


def part_from_openai(fields: FrozenDict[Any]) -> ContentPart:
    """Return the part of these frozen fields.

    A field whose value does not fit its declared type stays in `ContentPart.extra`,
    so nothing is lost; a part of a known kind without its payload is a `ContentPart`.
    """
    kind = fields.get("type")
    cls = _class_of(kind)
    payload = fields.get(cls.payload_name)
    if not isinstance(payload, str if cls.payload_name in _TEXT_PAYLOADS else dict):
        cls = ContentPart
    declared = {cls.payload_name} if cls is not ContentPart else set[str]()
    if isinstance(kind, str):
        declared.add("type")
    values: dict[str, Any] = {"type": None}
    rest: dict[str, Any] = {}
    for key, value in fields.items():
        (values if key in declared else rest)[key] = value
    given = set(declared)
    values["extra"] = EMPTY
    if rest:
        values["extra"] = frozen_dict(rest)
        given.add("extra")
    part: ContentPart = build(cls, values, given)
    return part


def _class_of(kind: object) -> type[ContentPart]:
    return PART_TYPES.get(kind, ContentPart) if isinstance(kind, str) else ContentPart


def validate_part(value: object) -> object:
    """Let a plain dict stand for the part that it describes, or is the dump of."""
    if isinstance(value, Mapping):
        items = dict(cast("Mapping[str, object]", value))
        if isinstance(items.get("extra"), Mapping):
            cls = _class_of(items.get("type"))
            if cls.payload_name not in items:
                cls = ContentPart
            if items.keys() <= cls.model_fields.keys():
                return cls(**cast("dict[str, Any]", items))
        return part_from_openai(cast("FrozenDict[Any]", freeze(items, "", PART_DEPTH)))
    return value


def build(
    cls: Any,
    values: dict[str, Any],
    given: set[str],
    private: dict[str, Any] | None = None,
) -> Any:
    """Return a model of values that are known to be valid and, if it is, frozen.

    Args:
        cls: a pydantic model without extra fields.
        values: every field of the class.
        given: the names of those that were given rather than defaulted.
        private: every private attribute of the class.
    """
    model = cls.__new__(cls)
    _set_dict(model, values)
    _set_given(model, given)
    _set_extra(model, None)
    _set_private(model, private)
    return model


_set_dict = BaseModel.__dict__["__dict__"].__set__
_set_given = BaseModel.__dict__["__pydantic_fields_set__"].__set__
_set_extra = BaseModel.__dict__["__pydantic_extra__"].__set__
_set_private = BaseModel.__dict__["__pydantic_private__"].__set__
