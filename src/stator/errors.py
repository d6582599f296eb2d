"""Every error Stator raises, two-way with DynamoDB's wire format.

The engine raises these classes, the server writes them with :meth:`ServiceError.wire`, and a client
rebuilds the same class from the reply with :func:`from_wire`. Classes are named after the reason;
the facts a caller needs stand as attributes.

    StatorError
    +-- ServiceError                      an answer DynamoDB gives
    |   +-- ValidationFailed              ValidationException
    |   |   +-- ValueFailed               the same, about an attribute value
    |   |   +-- PathMissing               an update of something inside an item that the item does not have
    |   +-- SerializationFailed           SerializationException
    |   +-- UnknownOperation              UnknownOperationException
    |   +-- AccessDenied                  AccessDeniedException
    |   +-- MissingAuthenticationToken    MissingAuthenticationTokenException
    |   +-- IncompleteSignature           IncompleteSignatureException
    |   +-- InvalidSignature              InvalidSignatureException
    |   +-- UnrecognizedClient            UnrecognizedClientException
    |   +-- ConditionFailed               ConditionalCheckFailedException
    |   |   +-- ItemExists                there is an item where one was to be created
    |   |   +-- ItemNotFound              there is no item where one was to be changed
    |   |   +-- VersionConflict           somebody else wrote the item meanwhile
    |   |   +-- UniqueTaken               another item has the value of a unique field
    |   +-- TransactionCanceled           TransactionCanceledException
    |   |   +-- TransactionFailed         the same from the data layer, with the statement behind each reason
    |   +-- TransactionConflict           TransactionConflictException
    |   +-- TransactionInProgress         TransactionInProgressException
    |   +-- IdempotentParameterMismatch   IdempotentParameterMismatchException
    |   +-- DuplicateItem                 DuplicateItemException
    |   +-- ResourceNotFound              ResourceNotFoundException
    |   +-- ResourceInUse                 ResourceInUseException
    |   +-- TableNotFound                 TableNotFoundException
    |   +-- TableAlreadyExists            TableAlreadyExistsException
    |   +-- TableInUse                    TableInUseException
    |   +-- BackupNotFound                BackupNotFoundException
    |   +-- BackupInUse                   BackupInUseException
    |   +-- ContinuousBackupsUnavailable  ContinuousBackupsUnavailableException
    |   +-- RecoveryUnavailable           PointInTimeRecoveryUnavailableException
    |   +-- InvalidRestoreTime            InvalidRestoreTimeException
    |   +-- ExportNotFound                ExportNotFoundException
    |   +-- ExportConflict                ExportConflictException
    |   +-- InvalidExportTime             InvalidExportTimeException
    |   +-- ImportNotFound                ImportNotFoundException
    |   +-- ImportConflict                ImportConflictException
    |   +-- LimitExceeded                 LimitExceededException
    |   +-- ExpiredIterator               ExpiredIteratorException
    |   +-- TrimmedDataAccess             TrimmedDataAccessException
    |   +-- ItemCollectionTooLarge        ItemCollectionSizeLimitExceededException
    |   +-- SlowDown                      any of the ways to be told so
    |   |   +-- ThroughputExceeded        ProvisionedThroughputExceededException
    |   |   +-- RequestLimitExceeded      RequestLimitExceeded
    |   |   +-- Throttled                 ThrottlingException
    |   +-- ReplicatedWriteConflict       ReplicatedWriteConflictException
    |   +-- RequestTooLarge               RequestEntityTooLargeException
    |   +-- InternalServerError           InternalServerError
    +-- StorageError                      the disk under the embedded engine
    |   +-- StorageLocked                 another process has the folder open
    |   +-- StorageFormatUnsupported      the files were written by a newer Stator
    |   +-- StorageCorrupt                the files cannot be read back
    |   +-- StorageFull                   no room for a write; nothing acknowledged was lost
    |   +-- StorageClosed                 the engine was closed
    +-- ConnectionTrouble                 no answer came, or none that could be trusted
    |   +-- Unreachable                   no connection could be made
    |   +-- ReplyLost                     the connection broke, or timed out, before the answer was there
    |   +-- ReplyDamaged                  the answer is not what was sent: its checksum differs
    |   +-- OutcomeUnknown                a write that may or may not have happened, and would count twice if sent again
    |   +-- DeadlineExceeded              the time given to a call is over
    +-- CredentialsMissing                no AWS credentials where boto3 looks for them, or those there cannot be got
    +-- RequestRefused                    the data layer does not send what could not be right
    |   +-- CursorRefused                 a cursor that is damaged, or of another query
    |   +-- UpdateRefused                 an update that would leave an item's keys wrong
    |   +-- DestructiveChange             a change of a table that would lose data
    +-- BlobMissing                       an item names a blob that is not in the store
    +-- BlobDamaged                       a blob is not what was written
    +-- PatternError                      what a pattern object cannot do
    |   +-- LockBusy                      somebody else has the lock
    |   +-- LeaseLost                     the lease ended before it was renewed or given back
    |   +-- AlreadyRunning                another is carrying the same request out
    |   +-- PayloadDiffers                the same key came with another payload
    |   +-- Unstorable                    a result that cannot be kept, of work that is done
    |   +-- TookTooLong                   the work was taken over before its result could be stored
    |   +-- TreeCycle                     a node was to be moved below itself
    |   +-- TreeTooDeep                   a tree has no room for one more level
    +-- StreamError                       what stream workers and their handlers cannot do
    |   +-- StreamMissing                 a table has no stream, or one that shows too little
    |   +-- ImageNotShown                 a handler asks for an image that the stream does not show
    |   +-- NotAnEntity                   a handler asks for the entity of an item that is none
    |   +-- TryLater                      raised by handlers: what they need is away, and the change is not at fault
    |   +-- SinkRefused                   the receiver behind a sink does not take a change, and never will
    +-- BulkError                         what a load, an export or a copy cannot do
    |   +-- RowRefused                    a row that cannot become an item
    |   +-- JournalDiffers                a journal that is of another job, or whose input has changed since
    |   +-- TooManyErrors                 more rows failed than were allowed to
    |   +-- DataDiffers                   what was written, or read, is not what it should be: a count or a checksum
    +-- ConfigurationError                a setting or argument of Stator itself is wrong
    +-- LiveTableUnreachable              a real table that a command looks at cannot be read
    +-- DesignError                       an entity, a pattern or a design does not make sense
    |   +-- ItemMismatch                  a value that does not fit its entity's field
    |   +-- DesignFileWrong               the Python file of a design does not run, or has no design in it
    |   +-- PatternRefused                an access pattern that no key can serve as it was declared
    |   |   +-- ScanNeeded                one that would have to read the whole table
"""

from __future__ import annotations

from typing import Any, ClassVar

DYNAMODB = "com.amazonaws.dynamodb.v20120810"
CORAL_SERVICE = "com.amazon.coral.service"
CORAL_VALIDATE = "com.amazon.coral.validate"


class StatorError(Exception):
    """The root of the tree. ``hint`` says what to do next, when there is something to do."""

    hint: str | None = None

    def __init__(self, message: str = "", *, hint: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        if hint is not None:
            self.hint = hint

    def __str__(self) -> str:
        return self.message


class ServiceError(StatorError):
    """An error that DynamoDB itself answers with."""

    code: ClassVar[str] = "InternalServerError"
    status: ClassVar[int] = 400
    namespace: ClassVar[str] = DYNAMODB
    retryable: ClassVar[bool] = False
    default_message: ClassVar[str] = ""
    after_unknown: bool = False
    """An earlier attempt of the same request may have been carried out: a client sets this on the answer to a later one."""
    # AWS spells the member "message" in DynamoDB's own errors and "Message" in those of the
    # framework (coral) around it.
    message_member: ClassVar[str] = "message"

    def __init__(self, message: str | None = None, *, hint: str | None = None) -> None:
        super().__init__(self.default_message if message is None else message, hint=hint)

    def facts(self) -> dict[str, Any]:
        """Members of the wire form beside the type and the message."""
        return {}

    def wire(self) -> dict[str, Any]:
        body: dict[str, Any] = {"__type": f"{self.namespace}#{self.code}"}
        if self.message:
            body[self.message_member] = self.message
        return body | self.facts()


class ValidationFailed(ServiceError):
    code = "ValidationException"
    namespace = CORAL_VALIDATE


class ValueFailed(ValidationFailed):
    """A bad attribute value that AWS words in two ways.

    During 2026 the services behind PutItem, UpdateItem, DeleteItem, GetItem, BatchGetItem and Query moved to a new
    text; those behind the other operations still answer with ``older``.
    """

    def __init__(self, message: str, *, older: str) -> None:
        super().__init__(message)
        self.older = older


class PathMissing(ValidationFailed):
    """``paths`` are those of the update that need something of the stored item, and it has not got it for at least one of them."""

    def __init__(self, message: str, *, entity: str = "", paths: tuple[str, ...] = (), hint: str | None = None) -> None:
        super().__init__(message, hint=hint)
        self.entity = entity
        self.paths = paths


class SerializationFailed(ServiceError):
    code = "SerializationException"
    namespace = CORAL_SERVICE
    message_member = "Message"


class UnknownOperation(ServiceError):
    code = "UnknownOperationException"
    namespace = CORAL_SERVICE
    message_member = "Message"


class AccessDenied(ServiceError):
    code = "AccessDeniedException"
    namespace = CORAL_SERVICE
    message_member = "Message"


class MissingAuthenticationToken(ServiceError):
    code = "MissingAuthenticationTokenException"
    namespace = CORAL_SERVICE
    default_message = "Request is missing Authentication Token"


class IncompleteSignature(ServiceError):
    code = "IncompleteSignatureException"
    namespace = CORAL_SERVICE


class InvalidSignature(ServiceError):
    code = "InvalidSignatureException"
    namespace = CORAL_SERVICE


class UnrecognizedClient(ServiceError):
    code = "UnrecognizedClientException"
    namespace = CORAL_SERVICE
    default_message = "The security token included in the request is invalid."


class ConditionFailed(ServiceError):
    """``item`` is the stored item when ReturnValuesOnConditionCheckFailure asked for it; the data layer reads it as ``entity``."""

    code = "ConditionalCheckFailedException"
    entity: Any = None
    default_message = "The conditional request failed"

    def __init__(self, message: str | None = None, *, item: Any = None) -> None:
        super().__init__(message)
        self.item = item

    def facts(self) -> dict[str, Any]:
        return {} if self.item is None else {"Item": self.item}


class ItemExists(ConditionFailed):
    """``entity`` is the one that is there."""


class ItemNotFound(ConditionFailed):
    """There is nothing to change."""


class VersionConflict(ConditionFailed):
    """``entity`` is the one that is there now; ``expected`` the version that was to be replaced."""

    def __init__(self, message: str | None = None, *, item: Any = None, expected: int = 0) -> None:
        super().__init__(message, item=item)
        self.hint = "read it again, make the change again, and write that"
        self.expected = expected


class UniqueTaken(ConditionFailed):
    """``field`` of another item has ``value`` already."""

    def __init__(self, message: str | None = None, *, item: Any = None, field: str = "", value: Any = None) -> None:
        super().__init__(message, item=item)
        self.field = field
        self.value = value


class TransactionCanceled(ServiceError):
    """``reasons`` has one entry per action, in the order of the request."""

    code = "TransactionCanceledException"
    message_member = "Message"

    def __init__(self, message: str | None = None, *, reasons: list[dict[str, Any]] | None = None) -> None:
        self.reasons = reasons or []
        codes = ", ".join(reason["Code"] for reason in self.reasons)
        super().__init__(
            message or f"Transaction cancelled, please refer cancellation reasons for specific reasons [{codes}]"
        )

    def facts(self) -> dict[str, Any]:
        return {"CancellationReasons": self.reasons}


class TransactionFailed(TransactionCanceled):
    """``failures`` has the statements that stood in the way: their place, what they were to do, and the error of each."""

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
    code = "TransactionConflictException"
    default_message = "Transaction is ongoing for the item"
    retryable = True


class TransactionInProgress(ServiceError):
    code = "TransactionInProgressException"
    default_message = "The transaction with the given request token is already in progress."
    retryable = True


class IdempotentParameterMismatch(ServiceError):
    code = "IdempotentParameterMismatchException"
    message_member = "Message"
    default_message = (
        "The provided client token is already in use with different parameters. Please try again "
        "with a different client token or the original parameters."
    )


class DuplicateItem(ServiceError):
    code = "DuplicateItemException"
    default_message = "Duplicate primary key exists in table"


class ResourceNotFound(ServiceError):
    code = "ResourceNotFoundException"
    default_message = "Requested resource not found"


class ResourceInUse(ServiceError):
    code = "ResourceInUseException"


class TableNotFound(ServiceError):
    code = "TableNotFoundException"


class TableAlreadyExists(ServiceError):
    code = "TableAlreadyExistsException"


class TableInUse(ServiceError):
    code = "TableInUseException"


class BackupNotFound(ServiceError):
    code = "BackupNotFoundException"


class BackupInUse(ServiceError):
    """The backup is being made, deleted or restored."""

    code = "BackupInUseException"


class ContinuousBackupsUnavailable(ServiceError):
    code = "ContinuousBackupsUnavailableException"


class RecoveryUnavailable(ServiceError):
    """Point-in-time recovery is not on for the table."""

    code = "PointInTimeRecoveryUnavailableException"


class InvalidRestoreTime(ServiceError):
    code = "InvalidRestoreTimeException"


class ExportNotFound(ServiceError):
    code = "ExportNotFoundException"


class ExportConflict(ServiceError):
    """The client token was used with other parameters."""

    code = "ExportConflictException"


class InvalidExportTime(ServiceError):
    code = "InvalidExportTimeException"


class ImportNotFound(ServiceError):
    code = "ImportNotFoundException"


class ImportConflict(ServiceError):
    """The client token was used with other parameters."""

    code = "ImportConflictException"


class LimitExceeded(ServiceError):
    code = "LimitExceededException"


class ExpiredIterator(ServiceError):
    code = "ExpiredIteratorException"
    default_message = "The shard iterator has expired. Shard iterator has expired 15 minutes after it was retrieved."


class TrimmedDataAccess(ServiceError):
    code = "TrimmedDataAccessException"
    default_message = "The operation attempted to read past the oldest stream record in a shard."


class ItemCollectionTooLarge(ServiceError):
    code = "ItemCollectionSizeLimitExceededException"
    default_message = "Collection size exceeded."


class SlowDown(ServiceError):
    """``throttling_reasons`` say which limit of which table or index was reached, where the service tells."""

    retryable = True
    reasons_member: ClassVar[str] = "ThrottlingReasons"

    def __init__(self, message: str | None = None, *, throttling_reasons: list[dict[str, Any]] | None = None) -> None:
        super().__init__(message)
        self.throttling_reasons = throttling_reasons or []

    def facts(self) -> dict[str, Any]:
        return {self.reasons_member: self.throttling_reasons} if self.throttling_reasons else {}


class ThroughputExceeded(SlowDown):
    code = "ProvisionedThroughputExceededException"
    default_message = (
        "The level of configured provisioned throughput for the table was exceeded. Consider "
        "increasing your provisioning level with the UpdateTable API."
    )


class RequestLimitExceeded(SlowDown):
    code = "RequestLimitExceeded"


class Throttled(SlowDown):
    code = "ThrottlingException"
    reasons_member = "throttlingReasons"


class ReplicatedWriteConflict(ServiceError):
    """Another region of a strongly consistent global table is writing the item."""

    code = "ReplicatedWriteConflictException"
    retryable = True


class RequestTooLarge(ServiceError):
    code = "RequestEntityTooLargeException"
    namespace = CORAL_SERVICE
    status = 413


class InternalServerError(ServiceError):
    code = "InternalServerError"
    status = 500
    retryable = True
    default_message = "The request processing has failed because of an unknown error, exception or failure."


class StorageError(StatorError):
    """Something is wrong with the files under the embedded engine."""


class StorageLocked(StorageError):
    """``holder`` names the process that has the folder open, as far as it can be told."""

    def __init__(self, path: str, holder: str | None) -> None:
        who = holder or "another process"
        super().__init__(
            f"the data folder {path} is already open in {who}",
            hint="stop that process, or point this one at a folder of its own",
        )
        self.path = path
        self.holder = holder


class StorageFormatUnsupported(StorageError):
    def __init__(self, path: str, found: int, supported: int) -> None:
        super().__init__(
            f"the data folder {path} has format {found}; this Stator reads up to format {supported}",
            hint="open it with the newer Stator that wrote it",
        )
        self.found = found
        self.supported = supported


class StorageCorrupt(StorageError):
    def __init__(self, path: str, detail: str) -> None:
        super().__init__(
            f"the data folder {path} cannot be read: {detail}",
            hint="restore the folder from a copy; nothing in it was changed by this attempt to open it",
        )
        self.path = path
        self.detail = detail


class StorageFull(StorageError):
    def __init__(self, path: str, detail: str) -> None:
        super().__init__(
            f"no write can be made to {path}: {detail}",
            hint="free some space and start again; every acknowledged write is safe",
        )
        self.path = path
        self.detail = detail


class StorageClosed(StorageError):
    def __init__(self) -> None:
        super().__init__("the engine is closed", hint="open a new engine on the same folder")


class ConnectionTrouble(StatorError):
    """``retryable`` says whether trying again may help; ``sent`` whether the request may have been carried out."""

    retryable: ClassVar[bool] = True
    sent: bool = False


class Unreachable(ConnectionTrouble):
    """Nothing was sent."""


class ReplyLost(ConnectionTrouble):
    sent = True


class ReplyDamaged(ConnectionTrouble):
    sent = True


class OutcomeUnknown(ConnectionTrouble):
    """The cause is the trouble behind it."""

    retryable = False
    sent = True
    hint = "read the item to see, or ask for the update with once=True, which costs twice the write units"


class DeadlineExceeded(ConnectionTrouble):
    retryable = False
    sent = True


class CredentialsMissing(StatorError):
    hint = "set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, choose a profile with AWS_PROFILE, or run `aws sso login`"


class RequestRefused(StatorError):
    """What was asked cannot be right, so nothing was sent."""


class CursorRefused(RequestRefused):
    hint = "pass the cursor of the page before, with the same pattern and the same arguments"


class UpdateRefused(RequestRefused):
    """``missing`` names the fields whose values are needed and not known."""

    def __init__(self, message: str, *, missing: tuple[str, ...] = (), hint: str | None = None) -> None:
        super().__init__(message, hint=hint)
        self.missing = missing


class DestructiveChange(RequestRefused):
    """``changes`` says in words what would be lost."""

    def __init__(self, message: str, *, changes: tuple[str, ...] = (), hint: str | None = None) -> None:
        super().__init__(message, hint=hint)
        self.changes = changes


class BlobMissing(StatorError):
    def __init__(self, key: str) -> None:
        super().__init__(f"the blob {key} is not there", hint="is this the store that the item was written with?")
        self.key = key


class BlobDamaged(StatorError):
    def __init__(self, key: str) -> None:
        super().__init__(f"the blob {key} is not what was written: its hash differs", hint="restore it from a backup")
        self.key = key


class PatternError(StatorError):
    """What a pattern object, such as a lock or a series, cannot do."""


class LockBusy(PatternError):
    """Somebody else has the lock; ``until`` is when their lease ends, unless they renew it."""

    def __init__(self, name: str, owner: str, until: float) -> None:
        super().__init__(f"the lock {name} is held by {owner}", hint="wait with wait_seconds=..., or try again later")
        self.name = name
        self.owner = owner
        self.until = until


class LeaseLost(PatternError):
    """The lease ended, or another has it, before it was renewed or given back."""


class AlreadyRunning(PatternError):
    """Another is at it; ``until`` is when it may be taken over."""

    def __init__(self, key: str, until: float) -> None:
        super().__init__(
            f"{key} is being carried out by another", hint="try again in a moment, or wait with wait_seconds=..."
        )
        self.until = until


class PayloadDiffers(PatternError):
    """The same key came with another payload."""

    def __init__(self, key: str) -> None:
        super().__init__(f"{key} was used with another payload before", hint="use a key of its own for each request")


class Unstorable(PatternError):
    """The work is done; what it gave cannot be given again."""


class TookTooLong(PatternError):
    """The work was taken over by another before its result could be stored."""


class TreeCycle(PatternError):
    """The new parent is the node itself, or below it."""

    def __init__(self, tree: str, node: object, parent: object) -> None:
        super().__init__(
            f"{node} cannot be moved under {parent}, which is itself or below it, in the tree {tree}",
            hint="move what is below it somewhere else first",
        )
        self.node = node
        self.parent = parent


class TreeTooDeep(PatternError):
    """Every ancestor takes part in a move, and a transaction has an end."""

    def __init__(self, levels: int) -> None:
        super().__init__(f"a tree has at most {levels} levels", hint="put the node higher up")
        self.levels = levels


class StreamError(StatorError):
    """What stream workers and their handlers cannot do."""


class StreamMissing(StreamError):
    """The table has no stream, or one whose view type shows too little."""


class ImageNotShown(StreamError):
    """A handler asks for an image that the stream does not show."""

    def __init__(self, view: str) -> None:
        super().__init__(
            "the stream does not show this image", hint=f"its view type must be {view} or NEW_AND_OLD_IMAGES"
        )


class NotAnEntity(StreamError):
    """A handler asks for the entity of an item that is none of the design's."""


class TryLater(StreamError):
    """Raised by a handler whose change is not at fault: what it needs is away. It is tried again for as long as it takes, and never parked."""


class SinkRefused(StreamError):
    """The receiver behind a sink does not take a change as it is, and would not later: it is too large, or malformed."""


class BulkError(StatorError):
    """What a load, an export or a copy cannot do."""


class RowRefused(BulkError):
    """The message is the reason in its dead letter."""


class JournalDiffers(BulkError):
    """``path`` is the journal; ``what`` differs."""

    def __init__(self, path: str, what: str, *, hint: str) -> None:
        super().__init__(f"the journal {path} is of another job: {what}", hint=hint)
        self.path = path
        self.what = what


class TooManyErrors(BulkError):
    """``failed`` rows are in the dead letters."""

    def __init__(self, failed: int, allowed: int, first_reason: str) -> None:
        super().__init__(f"{failed} rows failed, and {allowed} were allowed to; the first: {first_reason}")
        self.failed = failed
        self.allowed = allowed


class DataDiffers(BulkError):
    """The message says what was expected and what was found."""


class ConfigurationError(StatorError):
    """An argument or a file given to Stator itself does not make sense."""


class LiveTableUnreachable(StatorError):
    """No connection, no permission, no credentials: ``hint`` says which to look at."""


class DesignError(StatorError):
    """Something is wrong with an entity, an access pattern or a design."""


class ItemMismatch(DesignError):
    """A value does not fit the field of an entity it was written to, or read for."""

    def __init__(self, entity: str, field: str, problem: str, value: object) -> None:
        shown = repr(value)
        super().__init__(f"{entity}.{field}: {problem}: {shown if len(shown) <= 80 else shown[:77] + '...'}")
        self.entity = entity
        self.field = field
        self.value = value


class DesignFileWrong(DesignError):
    """``path`` and ``line`` say where; ``excerpt`` is that line; ``problem`` is the message without them."""

    def __init__(self, path: str, line: int, problem: str, *, hint: str | None = None, excerpt: str = "") -> None:
        shown = f"\n{line:>6} | {excerpt.strip()}" if excerpt.strip() else ""
        super().__init__(f"{path}:{line}: {problem}{shown}", hint=hint)
        self.path = path
        self.line = line
        self.problem = problem
        self.excerpt = excerpt


class PatternRefused(DesignError):
    """``pattern`` is its name; ``dollars`` a month is the price of the change that ``hint`` proposes, where it has one."""

    def __init__(self, pattern: str, message: str, *, hint: str, dollars: float | None = None) -> None:
        super().__init__(message, hint=hint)
        self.pattern = pattern
        self.dollars = dollars


class ScanNeeded(PatternRefused):
    """``scan_dollars`` is what the pattern would cost as a Scan, a month."""

    def __init__(
        self, pattern: str, message: str, *, hint: str, dollars: float | None = None, scan_dollars: float = 0.0
    ) -> None:
        super().__init__(pattern, message, hint=hint, dollars=dollars)
        self.scan_dollars = scan_dollars


def _leaves(cls: type[ServiceError]) -> list[type[ServiceError]]:
    return [leaf for sub in cls.__subclasses__() for leaf in (sub, *_leaves(sub))]


# A class without a code of its own is a reading of its parent's, which the wire does not tell apart.
BY_CODE: dict[str, type[ServiceError]] = {cls.code: cls for cls in _leaves(ServiceError) if "code" in cls.__dict__}


def from_wire(status: int, body: dict[str, Any]) -> ServiceError:
    """Rebuild the error a reply stands for; an unknown type keeps its code in the message."""
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
    return InternalServerError(message) if status >= 500 else ServiceError(f"{code}: {message or ''}")
