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

from stator.errors.base import StatorError
from stator.errors.client import (
    ConnectionTrouble,
    CredentialsMissing,
    DeadlineExceeded,
    OutcomeUnknown,
    ReplyDamaged,
    ReplyLost,
    Unreachable,
)
from stator.errors.data import (
    AlreadyRunning,
    BlobDamaged,
    BlobMissing,
    CursorRefused,
    DestructiveChange,
    LeaseLost,
    LockBusy,
    PatternError,
    PayloadDiffers,
    RequestRefused,
    TookTooLong,
    TreeCycle,
    TreeTooDeep,
    Unstorable,
    UpdateRefused,
)
from stator.errors.design import (
    ConfigurationError,
    DesignError,
    DesignFileWrong,
    ItemMismatch,
    LiveTableUnreachable,
    PatternRefused,
    ScanNeeded,
)
from stator.errors.pipeline import (
    BulkError,
    DataDiffers,
    ImageNotShown,
    JournalDiffers,
    NotAnEntity,
    RowRefused,
    SinkRefused,
    StreamError,
    StreamMissing,
    TooManyErrors,
    TryLater,
)
from stator.errors.service import (
    AccessDenied,
    BackupInUse,
    BackupNotFound,
    ConditionFailed,
    ContinuousBackupsUnavailable,
    DuplicateItem,
    ExpiredIterator,
    ExportConflict,
    ExportNotFound,
    IdempotentParameterMismatch,
    ImportConflict,
    ImportNotFound,
    IncompleteSignature,
    InternalServerError,
    InvalidExportTime,
    InvalidRestoreTime,
    InvalidSignature,
    ItemCollectionTooLarge,
    ItemExists,
    ItemNotFound,
    LimitExceeded,
    MissingAuthenticationToken,
    PathMissing,
    RecoveryUnavailable,
    ReplicatedWriteConflict,
    RequestLimitExceeded,
    RequestTooLarge,
    ResourceInUse,
    ResourceNotFound,
    SerializationFailed,
    ServiceError,
    SlowDown,
    TableAlreadyExists,
    TableInUse,
    TableNotFound,
    Throttled,
    ThroughputExceeded,
    TransactionCanceled,
    TransactionConflict,
    TransactionFailed,
    TransactionInProgress,
    TrimmedDataAccess,
    UniqueTaken,
    UnknownOperation,
    UnrecognizedClient,
    ValidationFailed,
    ValueFailed,
    VersionConflict,
    from_wire,
)
from stator.errors.storage import (
    StorageClosed,
    StorageCorrupt,
    StorageError,
    StorageFormatUnsupported,
    StorageFull,
    StorageLocked,
)

__all__ = [
    "AccessDenied",
    "AlreadyRunning",
    "BackupInUse",
    "BackupNotFound",
    "BlobDamaged",
    "BlobMissing",
    "BulkError",
    "ConditionFailed",
    "ConfigurationError",
    "ConnectionTrouble",
    "ContinuousBackupsUnavailable",
    "CredentialsMissing",
    "CursorRefused",
    "DataDiffers",
    "DeadlineExceeded",
    "DesignError",
    "DesignFileWrong",
    "DestructiveChange",
    "DuplicateItem",
    "ExpiredIterator",
    "ExportConflict",
    "ExportNotFound",
    "IdempotentParameterMismatch",
    "ImageNotShown",
    "ImportConflict",
    "ImportNotFound",
    "IncompleteSignature",
    "InternalServerError",
    "InvalidExportTime",
    "InvalidRestoreTime",
    "InvalidSignature",
    "ItemCollectionTooLarge",
    "ItemExists",
    "ItemMismatch",
    "ItemNotFound",
    "JournalDiffers",
    "LeaseLost",
    "LimitExceeded",
    "LiveTableUnreachable",
    "LockBusy",
    "MissingAuthenticationToken",
    "NotAnEntity",
    "OutcomeUnknown",
    "PathMissing",
    "PatternError",
    "PatternRefused",
    "PayloadDiffers",
    "RecoveryUnavailable",
    "ReplicatedWriteConflict",
    "ReplyDamaged",
    "ReplyLost",
    "RequestLimitExceeded",
    "RequestRefused",
    "RequestTooLarge",
    "ResourceInUse",
    "ResourceNotFound",
    "RowRefused",
    "ScanNeeded",
    "SerializationFailed",
    "ServiceError",
    "SinkRefused",
    "SlowDown",
    "StatorError",
    "StorageClosed",
    "StorageCorrupt",
    "StorageError",
    "StorageFormatUnsupported",
    "StorageFull",
    "StorageLocked",
    "StreamError",
    "StreamMissing",
    "TableAlreadyExists",
    "TableInUse",
    "TableNotFound",
    "Throttled",
    "ThroughputExceeded",
    "TooManyErrors",
    "TookTooLong",
    "TransactionCanceled",
    "TransactionConflict",
    "TransactionFailed",
    "TransactionInProgress",
    "TreeCycle",
    "TreeTooDeep",
    "TrimmedDataAccess",
    "TryLater",
    "UniqueTaken",
    "UnknownOperation",
    "Unreachable",
    "UnrecognizedClient",
    "Unstorable",
    "UpdateRefused",
    "ValidationFailed",
    "ValueFailed",
    "VersionConflict",
    "from_wire",
]
