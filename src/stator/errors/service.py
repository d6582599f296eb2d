"""DynamoDB's own errors, converted to and from the JSON of its replies.

Messages and codes here are AWS's own texts. A class without its own ``code`` is a special case of
its parent: both have the same code on the wire.
"""

from __future__ import annotations

from typing import Any, ClassVar

from stator.errors.base import StatorError

DYNAMODB = "com.amazonaws.dynamodb.v20120810"
CORAL_SERVICE = "com.amazon.coral.service"
CORAL_VALIDATE = "com.amazon.coral.validate"

MESSAGE_CHARACTERS = 32_768
"""Longer messages are cut: some repeat a part of the request, which may have 16 MB."""


class ServiceError(StatorError):
    """An error reply from DynamoDB."""

    code: ClassVar[str] = "InternalServerError"
    status: ClassVar[int] = 400
    namespace: ClassVar[str] = DYNAMODB
    retryable: ClassVar[bool] = False
    default_message: ClassVar[str] = ""
    after_unknown: bool = False
    """Set by a client that retried: an earlier attempt may have been carried out."""
    operation: str | None = None
    """The operation that failed, set by the data layer."""
    # AWS spells the member "message" in DynamoDB's own errors and "Message" in the errors of Coral,
    # the framework around it.
    message_member: ClassVar[str] = "message"

    def __init__(self, message: str | None = None, *, hint: str | None = None) -> None:
        text = self.default_message if message is None else message
        if len(text) > MESSAGE_CHARACTERS:
            text = text[:MESSAGE_CHARACTERS] + "..."
        super().__init__(text, hint=hint)

    @property
    def sent(self) -> bool:
        """Whether the service may have carried out a write that ended with this error.

        True after a fault inside the service, and if the answer to an earlier attempt was lost.
        """
        return self.status >= 500 or self.after_unknown

    def facts(self) -> dict[str, Any]:
        """Return the members of the reply other than its type and message."""
        return {}

    def wire(self) -> dict[str, Any]:
        """Return the JSON body of the error reply."""
        body: dict[str, Any] = {"__type": f"{self.namespace}#{self.code}"}
        if self.message:
            body[self.message_member] = self.message
        return body | self.facts()


class ValidationFailed(ServiceError):
    """The request breaks one of DynamoDB's rules. The message says which."""

    code = "ValidationException"
    namespace = CORAL_VALIDATE


class ValueFailed(ValidationFailed):
    """A bad attribute value, for which AWS has a new text (``message``) and an ``older`` text.

    During 2026, PutItem, UpdateItem, DeleteItem, GetItem, BatchGetItem and Query changed to the new
    text. The other operations still answer with the older text.
    """

    def __init__(self, message: str, *, older: str) -> None:
        super().__init__(message)
        self.older = older


class PathMissing(ValidationFailed):
    """An update refers to a nested attribute that the stored item does not have.

    ``paths`` are the paths of the update that must exist in the stored item; at least one does not.
    """

    def __init__(
        self,
        message: str,
        *,
        entity: str = "",
        paths: tuple[str, ...] = (),
        hint: str | None = None,
    ) -> None:
        super().__init__(message, hint=hint)
        self.entity = entity
        self.paths = paths


class SerializationFailed(ServiceError):
    """The request is not DynamoDB JSON: it is malformed, or a member has the wrong JSON type."""

    code = "SerializationException"
    namespace = CORAL_SERVICE
    message_member = "Message"


class UnknownOperation(ServiceError):
    """The service has no operation of this name."""

    code = "UnknownOperationException"
    namespace = CORAL_SERVICE
    message_member = "Message"


class AccessDenied(ServiceError):
    """The caller's policies do not allow the operation on this table."""

    code = "AccessDeniedException"
    namespace = CORAL_SERVICE
    message_member = "Message"


class MissingAuthenticationToken(ServiceError):
    """The request is not signed."""

    code = "MissingAuthenticationTokenException"
    namespace = CORAL_SERVICE
    default_message = "Request is missing Authentication Token"


class IncompleteSignature(ServiceError):
    """The signature of the request lacks a part, such as the signed headers."""

    code = "IncompleteSignatureException"
    namespace = CORAL_SERVICE


class InvalidSignature(ServiceError):
    """The signature does not fit the request: a wrong secret key, or a clock that is off."""

    code = "InvalidSignatureException"
    namespace = CORAL_SERVICE


class UnrecognizedClient(ServiceError):
    """The service does not know the access key or session token."""

    code = "UnrecognizedClientException"
    namespace = CORAL_SERVICE
    default_message = "The security token included in the request is invalid."


class ConditionFailed(ServiceError):
    """The stored item does not meet the condition of the write.

    ``item`` is the stored item, if ReturnValuesOnConditionCheckFailure asked for it. The data layer
    decodes it as ``entity``.
    """

    code = "ConditionalCheckFailedException"
    entity: Any = None
    default_message = "The conditional request failed"

    def __init__(
        self, message: str | None = None, *, item: Any = None, hint: str | None = None
    ) -> None:
        super().__init__(message, hint=hint)
        self.item = item

    def facts(self) -> dict[str, Any]:
        return {} if self.item is None else {"Item": self.item}


class ItemExists(ConditionFailed):
    """An item with this key already exists. ``entity`` is the stored item."""


class ItemNotFound(ConditionFailed):
    """No item has this key, so there is nothing to change."""


class VersionConflict(ConditionFailed):
    """Another writer changed the item first.

    ``entity`` is the stored item; ``expected`` is the version that the write was to replace.
    """

    hint = "read the item again, repeat the change, and write the result"

    def __init__(self, message: str | None = None, *, item: Any = None, expected: int = 0) -> None:
        super().__init__(message, item=item)
        self.expected = expected


class UniqueTaken(ConditionFailed):
    """Another item already has ``value`` in its unique ``field``."""

    def __init__(
        self, message: str | None = None, *, item: Any = None, field: str = "", value: Any = None
    ) -> None:
        super().__init__(message, item=item)
        self.field = field
        self.value = value


class TransactionCanceled(ServiceError):
    """A transaction was cancelled. ``reasons`` has one entry per action, in request order."""

    code = "TransactionCanceledException"
    message_member = "Message"

    def __init__(
        self, message: str | None = None, *, reasons: list[dict[str, Any]] | None = None
    ) -> None:
        self.reasons = reasons or []
        codes = ", ".join(reason["Code"] for reason in self.reasons)
        super().__init__(
            message
            or "Transaction cancelled, please refer cancellation reasons for specific reasons "
            f"[{codes}]"
        )

    def facts(self) -> dict[str, Any]:
        return {"CancellationReasons": self.reasons}


class TransactionFailed(TransactionCanceled):
    """A transaction of the data layer was cancelled.

    ``failures`` lists the statements that caused this, each with its position, description and
    error.
    """

    def __init__(
        self,
        message: str | None = None,
        *,
        reasons: list[dict[str, Any]] | None = None,
        failures: list[tuple[int, str, ServiceError]] | None = None,
    ) -> None:
        super().__init__(message, reasons=reasons)
        self.failures = failures or []


class TransactionConflict(ServiceError):
    """Another transaction is writing the item. Trying again helps."""

    code = "TransactionConflictException"
    default_message = "Transaction is ongoing for the item"
    retryable = True


class TransactionInProgress(ServiceError):
    """A transaction with this token is still running. Trying again helps."""

    code = "TransactionInProgressException"
    message_member = "Message"
    default_message = "The transaction with the given request token is already in progress."
    retryable = True


class IdempotentParameterMismatch(ServiceError):
    """The client token was used before, with other parameters."""

    code = "IdempotentParameterMismatchException"
    message_member = "Message"
    default_message = (
        "The provided client token is already in use with different parameters. Please try again "
        "with a different client token or the original parameters."
    )


class DuplicateItem(ServiceError):
    """A PartiQL INSERT found an item with the same key."""

    code = "DuplicateItemException"
    default_message = "Duplicate primary key exists in table"


class ResourceNotFound(ServiceError):
    """The table, index or stream does not exist, or is not ready for requests."""

    code = "ResourceNotFoundException"
    default_message = "Requested resource not found"


class ResourceInUse(ServiceError):
    """The table exists already, or is being created, changed or deleted."""

    code = "ResourceInUseException"


class TableNotFound(ServiceError):
    """The table to back up, restore or export does not exist."""

    code = "TableNotFoundException"


class TableAlreadyExists(ServiceError):
    """A table with the name of the restored or imported one exists already."""

    code = "TableAlreadyExistsException"


class TableInUse(ServiceError):
    """The table is being created, changed or deleted."""

    code = "TableInUseException"


class BackupNotFound(ServiceError):
    """No backup has this ARN."""

    code = "BackupNotFoundException"


class BackupInUse(ServiceError):
    """The backup is being created, deleted or restored."""

    code = "BackupInUseException"


class ContinuousBackupsUnavailable(ServiceError):
    """The table's state does not allow a change of point-in-time recovery."""

    code = "ContinuousBackupsUnavailableException"


class RecoveryUnavailable(ServiceError):
    """Point-in-time recovery is off for the table."""

    code = "PointInTimeRecoveryUnavailableException"


class InvalidRestoreTime(ServiceError):
    """The table cannot be restored to this time: it lies outside the recovery window."""

    code = "InvalidRestoreTimeException"


class ExportNotFound(ServiceError):
    """No export has this ARN."""

    code = "ExportNotFoundException"


class ExportConflict(ServiceError):
    """The client token was used before, with other parameters."""

    code = "ExportConflictException"


class InvalidExportTime(ServiceError):
    """The table cannot be exported as of this time: it lies outside the recovery window."""

    code = "InvalidExportTimeException"


class ImportNotFound(ServiceError):
    """No import has this ARN."""

    code = "ImportNotFoundException"


class ImportConflict(ServiceError):
    """The client token was used before, with other parameters."""

    code = "ImportConflictException"


class LimitExceeded(ServiceError):
    """Too many tables, indexes or control-plane operations at once."""

    code = "LimitExceededException"


class ExpiredIterator(ServiceError):
    """The shard iterator is older than 15 minutes. Get a new one."""

    code = "ExpiredIteratorException"
    default_message = (
        "The shard iterator has expired. "
        "Shard iterator has expired 15 minutes after it was retrieved."
    )


class TrimmedDataAccess(ServiceError):
    """The stream record is older than 24 hours, and gone."""

    code = "TrimmedDataAccessException"
    default_message = "The operation attempted to read past the oldest stream record in a shard."


class ItemCollectionTooLarge(ServiceError):
    """An item collection of a table with a local index would grow beyond 10 GB."""

    code = "ItemCollectionSizeLimitExceededException"
    default_message = "Collection size exceeded."


class SlowDown(ServiceError):
    """The service throttled the request.

    ``throttling_reasons`` names the limit and the table or index, if the service reports them.
    """

    retryable = True
    reasons_member: ClassVar[str] = "ThrottlingReasons"

    def __init__(
        self, message: str | None = None, *, throttling_reasons: list[dict[str, Any]] | None = None
    ) -> None:
        super().__init__(message)
        self.throttling_reasons = throttling_reasons or []

    def facts(self) -> dict[str, Any]:
        return {self.reasons_member: self.throttling_reasons} if self.throttling_reasons else {}


class ThroughputExceeded(SlowDown):
    """The table, index or partition has used up its capacity. Clients retry with back-off."""

    code = "ProvisionedThroughputExceededException"
    default_message = (
        "The level of configured provisioned throughput for the table was exceeded. Consider "
        "increasing your provisioning level with the UpdateTable API."
    )


class RequestLimitExceeded(SlowDown):
    """The account's throughput limit is used up. Clients retry with back-off."""

    code = "RequestLimitExceeded"


class Throttled(SlowDown):
    """Too many control-plane requests a second, or an on-demand table beyond one of its limits.

    Clients retry with back-off.
    """

    code = "ThrottlingException"
    namespace = "com.amazon.coral.availability"
    reasons_member = "throttlingReasons"


class ReplicatedWriteConflict(ServiceError):
    """Another Region of a strongly consistent global table is writing the item."""

    code = "ReplicatedWriteConflictException"
    retryable = True


class RequestTooLarge(ServiceError):
    """The body of the request is larger than the service reads."""

    code = "RequestEntityTooLargeException"
    namespace = CORAL_SERVICE
    status = 413


class InternalServerError(ServiceError):
    """The service failed. Clients retry requests that are safe to repeat."""

    code = "InternalServerError"
    status = 500
    retryable = True
    default_message = (
        "The request processing has failed because of an unknown error, exception or failure."
    )


def _leaves(cls: type[ServiceError]) -> list[type[ServiceError]]:
    return [leaf for sub in cls.__subclasses__() for leaf in (sub, *_leaves(sub))]


BY_CODE: dict[str, type[ServiceError]] = {
    cls.code: cls for cls in _leaves(ServiceError) if "code" in cls.__dict__
}


def from_wire(status: int, body: dict[str, Any]) -> ServiceError:
    """Return the error that an error reply stands for, as an instance of its class.

    An error of unknown type becomes an InternalServerError if its status is 500 or higher, and
    otherwise a ServiceError whose message starts with the code.
    """
    code = str(body.get("__type", "")).rpartition("#")[2]
    message = body.get("message") or body.get("Message")
    cls = BY_CODE.get(code)
    if cls is ConditionFailed:
        return ConditionFailed(message, item=body.get("Item"))
    if cls is TransactionCanceled:
        return TransactionCanceled(message, reasons=body.get("CancellationReasons"))
    if cls is not None and issubclass(cls, SlowDown):
        return cls(message, throttling_reasons=body.get(cls.reasons_member))
    if cls is not None:
        return cls(message)
    return (
        InternalServerError(message) if status >= 500 else ServiceError(f"{code}: {message or ''}")
    )
