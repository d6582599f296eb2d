"""Every error that Stator raises.

The engine raises these classes, the server writes them with :meth:`ServiceError.wire`, and a client
rebuilds the same class from the reply with :func:`from_wire`. A class is named after the reason,
its attributes hold the facts, and its ``hint`` says what to do next. The modules of this package
hold the classes by subject; import them from ``stator.errors``.

    StatorError
    +-- ServiceError                      an error reply from DynamoDB
    |   +-- ValidationFailed              ValidationException
    |   |   +-- ValueFailed               the same, about an attribute value
    |   |   +-- PathMissing               an update of a nested attribute that the item lacks
    |   +-- SerializationFailed           SerializationException
    |   +-- UnknownOperation              UnknownOperationException
    |   +-- AccessDenied                  AccessDeniedException
    |   +-- MissingAuthenticationToken    MissingAuthenticationTokenException
    |   +-- IncompleteSignature           IncompleteSignatureException
    |   +-- InvalidSignature              InvalidSignatureException
    |   +-- UnrecognizedClient            UnrecognizedClientException
    |   +-- ConditionFailed               ConditionalCheckFailedException
    |   |   +-- ItemExists                an item to create exists already
    |   |   +-- ItemNotFound              an item to change does not exist
    |   |   +-- VersionConflict           another writer changed the item first
    |   |   +-- UniqueTaken               another item has this value in a unique field
    |   +-- TransactionCanceled           TransactionCanceledException
    |   |   +-- TransactionFailed         the same, with the statement behind each reason
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
    |   +-- SlowDown                      the service throttled the request
    |   |   +-- ThroughputExceeded        ProvisionedThroughputExceededException
    |   |   +-- RequestLimitExceeded      RequestLimitExceeded
    |   |   +-- Throttled                 ThrottlingException
    |   +-- ReplicatedWriteConflict       ReplicatedWriteConflictException
    |   +-- RequestTooLarge               RequestEntityTooLargeException
    |   +-- InternalServerError           InternalServerError
    +-- CompanionRefused                  CloudWatch or another companion refuses a request
    +-- StorageError                      the data folder of the embedded engine cannot be used
    |   +-- StorageLocked                 another process has the folder open
    |   +-- StorageFormatUnsupported      a newer version of Stator wrote the folder
    |   +-- StorageFailed                 a file could not be read or written
    |   |   +-- StorageCorrupt            a file is damaged, missing, or not Stator's
    |   |   +-- StorageFull               the disk or its quota is full
    |   |   +-- StorageDenied             no permission, or a read-only file system
    |   |   +-- TooManyOpenFiles          the limit of open files is reached
    |   +-- StorageClosed                 the engine was used after it was closed
    |   +-- StorageForked                 the engine was opened before a fork
    +-- ConnectionTrouble                 no reply, or none that can be trusted
    |   +-- Unreachable                   no connection could be opened
    |   +-- ReplyLost                     the connection broke or timed out before the reply
    |   +-- ReplyDamaged                  the reply is malformed, or its checksum differs
    |   +-- OutcomeUnknown                a write that may have happened and is not safe to repeat
    |   +-- DeadlineExceeded              the call's deadline passed
    +-- CredentialsMissing                boto3's credential chain found no AWS credentials
    +-- RequestRefused                    the data layer found the call wrong and sent nothing
    |   +-- DbClosed                      a Db was used after it was closed
    |   +-- CursorRefused                 the cursor is damaged, or belongs to another query
    |   +-- UpdateRefused                 the update or patch cannot be made as given
    |   +-- DestructiveChange             the change to a table would lose data
    +-- BatchFailed                       some changes of a batch were not written
    +-- PartlyDone                        a write is stored, and a later step failed
    +-- BlobMissing                       an item refers to a blob that the store does not have
    +-- BlobDamaged                       a blob's content does not match its hash
    +-- ItemFormatUnsupported             a newer Stator wrote the items of a pattern or pipeline
    +-- PatternObjectError                a pattern object cannot do what was asked
    |   +-- LockBusy                      another owner holds the lock
    |   +-- LeaseLost                     the lease expired before it was renewed or released
    |   +-- AlreadyRunning                another process is running the same request
    |   +-- PayloadDiffers                an idempotency key came with another payload
    |   +-- Unstorable                    the work is done, but its result cannot be stored
    |   +-- TookTooLong                   another attempt took over before the result was stored
    |   +-- ResultNotStored               the work is done, and storing its result failed
    |   +-- TreeCycle                     a node cannot move below itself
    |   +-- TreeTooDeep                   the tree has reached its depth limit
    +-- StreamError                       a stream worker or its handler cannot continue
    |   +-- StreamMissing                 no stream, or one whose view type shows too little
    |   +-- ImageNotShown                 the stream's view type leaves out this item image
    |   +-- IdentityUnknown               the key of a change does not hold the item's identity
    |   +-- NotAnEntity                   the item belongs to no entity of the design
    |   +-- TryLater                      raised by handlers: a dependency is unavailable, retry
    |   +-- RegistryUnavailable           the schema registry of a topic does not answer
    |   +-- SinkRefused                   a sink's receiver rejects the change and always will
    +-- BulkError                         a load, an export or a copy cannot continue
    |   +-- RowRefused                    a row cannot become an item
    |   +-- JournalDamaged                the journal of a job cannot be read
    |   +-- JournalDiffers                the journal belongs to another job or input
    |   +-- TooManyErrors                 more rows failed than the job allows
    |   +-- DataDiffers                   a file, a count or a checksum is wrong
    +-- DataDamaged                       a file is truncated, damaged or in another format
    +-- ConfigurationError                an argument, option or file given to Stator is wrong
    +-- LiveTableUnreachable              a command cannot read a live table
    +-- DesignError                       an entity, an access pattern or a design is wrong
    |   +-- ItemMismatch                  a value does not fit its entity's field
    |   |   +-- NewerVersion              a newer version of the entity wrote the item
    |   +-- DesignFileWrong               the design's file does not run, or has no design
    |   +-- PatternRefused                no key can serve an access pattern as declared
    |   |   +-- ScanNeeded                the pattern would read the whole table
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
from stator.errors.companions import CompanionRefused
from stator.errors.data import (
    AlreadyRunning,
    BatchFailed,
    BlobDamaged,
    BlobMissing,
    CursorRefused,
    DbClosed,
    DestructiveChange,
    ItemFormatUnsupported,
    LeaseLost,
    LockBusy,
    PartlyDone,
    PatternObjectError,
    PayloadDiffers,
    RequestRefused,
    ResultNotStored,
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
    NewerVersion,
    PatternRefused,
    ScanNeeded,
)
from stator.errors.pipeline import (
    BulkError,
    DataDamaged,
    DataDiffers,
    IdentityUnknown,
    ImageNotShown,
    JournalDamaged,
    JournalDiffers,
    NotAnEntity,
    RegistryUnavailable,
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
    StorageDenied,
    StorageError,
    StorageFailed,
    StorageForked,
    StorageFormatUnsupported,
    StorageFull,
    StorageLocked,
    TooManyOpenFiles,
)

__all__ = [
    "AccessDenied",
    "AlreadyRunning",
    "BackupInUse",
    "BackupNotFound",
    "BatchFailed",
    "BlobDamaged",
    "BlobMissing",
    "BulkError",
    "CompanionRefused",
    "ConditionFailed",
    "ConfigurationError",
    "ConnectionTrouble",
    "ContinuousBackupsUnavailable",
    "CredentialsMissing",
    "CursorRefused",
    "DataDamaged",
    "DataDiffers",
    "DbClosed",
    "DeadlineExceeded",
    "DesignError",
    "DesignFileWrong",
    "DestructiveChange",
    "DuplicateItem",
    "ExpiredIterator",
    "ExportConflict",
    "ExportNotFound",
    "IdempotentParameterMismatch",
    "IdentityUnknown",
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
    "ItemFormatUnsupported",
    "ItemMismatch",
    "ItemNotFound",
    "JournalDamaged",
    "JournalDiffers",
    "LeaseLost",
    "LimitExceeded",
    "LiveTableUnreachable",
    "LockBusy",
    "MissingAuthenticationToken",
    "NewerVersion",
    "NotAnEntity",
    "OutcomeUnknown",
    "PartlyDone",
    "PathMissing",
    "PatternObjectError",
    "PatternRefused",
    "PayloadDiffers",
    "RecoveryUnavailable",
    "RegistryUnavailable",
    "ReplicatedWriteConflict",
    "ReplyDamaged",
    "ReplyLost",
    "RequestLimitExceeded",
    "RequestRefused",
    "RequestTooLarge",
    "ResourceInUse",
    "ResourceNotFound",
    "ResultNotStored",
    "RowRefused",
    "ScanNeeded",
    "SerializationFailed",
    "ServiceError",
    "SinkRefused",
    "SlowDown",
    "StatorError",
    "StorageClosed",
    "StorageCorrupt",
    "StorageDenied",
    "StorageError",
    "StorageFailed",
    "StorageForked",
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
    "TooManyOpenFiles",
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
