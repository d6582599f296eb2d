"""Published: the GitHub clone of The DynamoDB Book."""

from datetime import datetime
from typing import Literal

from stator import (
    Bundle2,
    Design,
    Entity,
    Query,
    counter,
    creates,
    find,
    ident,
    per,
    read,
    together,
    updates,
    write,
)

SOURCE = (
    "The DynamoDB Book, GitHub chapter. From memory; confidence high on the parents of each "
    "collection, "
    "middling on index numbers. Repository, issues and stars share the repository's "
    "partition; pull "
    "requests are the children of a repository in a first index; forks in a second; accounts "
    "with their "
    "repositories by time of the last change in a third; open and closed ones in a fourth."
)

State = Literal["open", "closed"]


class Account(Entity):
    account: str = ident()
    kind: Literal["user", "organisation"]
    plan: str


class Membership(Entity):
    organisation: str = ident()
    username: str = ident()
    role: str


class Repo(Entity):
    owner: str = ident()
    repo: str = ident()
    account: str  # equals owner: the parent in the list of an account
    fork_of: str | None = None  # owner/repo of the original
    stars: int = counter()
    updated_at: datetime


class Issue(Entity):
    owner: str = ident()
    repo: str = ident()
    number: int = ident()
    status: State
    author: str
    title: str


class PullRequest(Entity):
    owner: str = ident()
    repo: str = ident()
    number: int = ident()
    status: State
    author: str
    title: str


class Comment(Entity):
    owner: str = ident()
    repo: str = ident()
    number: int = ident()
    comment_id: str = ident()
    author: str
    text: str


class Star(Entity):
    owner: str = ident()
    repo: str = ident()
    username: str = ident()
    starred_at: datetime


class Reaction(Entity):
    target: str = ident()  # an issue, a pull request or a comment, as text
    username: str = ident()
    emoji: str = ident()


@read(rps=200)
def account(account: str) -> Query[Account]:
    return find(Account).where(Account.account == account)


@read(rps=50, returns=6)
def account_with_repos(account: str) -> Bundle2[Account, Repo]:
    return together(Account, Repo).where(Account.account == account)


@read(rps=50, returns=5)
def repos_of_account(account: str) -> Query[Repo]:
    return find(Repo).where(Repo.account == account).newest_first(Repo.updated_at).limit(20)


@read(rps=5, returns=30)
def members_of(organisation: str) -> Query[Membership]:
    return find(Membership).where(Membership.organisation == organisation)


@read(rps=500)
def repo(owner: str, repo: str) -> Query[Repo]:
    return find(Repo).where(Repo.owner == owner, Repo.repo == repo)


@read(rps=100, returns=25)
def newest_issues(owner: str, repo: str) -> Query[Issue]:
    return (
        find(Issue)
        .where(Issue.owner == owner, Issue.repo == repo)
        .newest_first(Issue.number)
        .limit(25)
    )


@read(rps=200)
def issue(owner: str, repo: str, number: int) -> Query[Issue]:
    return find(Issue).where(Issue.owner == owner, Issue.repo == repo, Issue.number == number)


@read(rps=100, returns=25)
def issues_by_status(owner: str, repo: str, status: State) -> Query[Issue]:
    return (
        find(Issue)
        .where(Issue.owner == owner, Issue.repo == repo, Issue.status == status)
        .newest_first(Issue.number)
        .limit(25)
    )


@read(rps=60, returns=25)
def newest_pulls(owner: str, repo: str) -> Query[PullRequest]:
    return (
        find(PullRequest)
        .where(PullRequest.owner == owner, PullRequest.repo == repo)
        .newest_first(PullRequest.number)
        .limit(25)
    )


@read(rps=150)
def pull(owner: str, repo: str, number: int) -> Query[PullRequest]:
    return find(PullRequest).where(
        PullRequest.owner == owner, PullRequest.repo == repo, PullRequest.number == number
    )


@read(rps=60, returns=25)
def pulls_by_status(owner: str, repo: str, status: State) -> Query[PullRequest]:
    return (
        find(PullRequest)
        .where(PullRequest.owner == owner, PullRequest.repo == repo, PullRequest.status == status)
        .newest_first(PullRequest.number)
        .limit(25)
    )


@read(rps=250, returns=4)
def comments_of(owner: str, repo: str, number: int) -> Query[Comment]:
    return (
        find(Comment)
        .where(Comment.owner == owner, Comment.repo == repo, Comment.number == number)
        .oldest_first(Comment.comment_id)
    )


@read(rps=5, returns=10)
def stargazers(owner: str, repo: str) -> Query[Star]:
    return find(Star).where(Star.owner == owner, Star.repo == repo).limit(30)


@read(rps=5, returns=20)
def forks_of(fork_of: str) -> Query[Repo]:
    return find(Repo).where(Repo.fork_of == fork_of).order_by(Repo.owner).limit(20)


@read(rps=40)
def has_reacted(target: str, username: str, emoji: str) -> Query[Reaction]:
    return find(Reaction).where(
        Reaction.target == target, Reaction.username == username, Reaction.emoji == emoji
    )


@write(rps=10)
def open_issue() -> object:
    return creates(Issue)


@write(rps=8)
def open_pull() -> object:
    return creates(PullRequest)


@write(rps=9)
def close_issue() -> object:
    return updates(Issue.status)


@write(rps=40)
def push() -> object:
    return updates(Repo.updated_at)


@write(rps=20)
def star() -> object:
    return creates(Star), updates(Repo.stars)


design = Design(
    "book_github",
    [Account, Membership, Repo, Issue, PullRequest, Comment, Star, Reaction],
    [
        account,
        account_with_repos,
        repos_of_account,
        members_of,
        repo,
        newest_issues,
        issue,
        issues_by_status,
        newest_pulls,
        pull,
        pulls_by_status,
        comments_of,
        stargazers,
        forks_of,
        has_reacted,
        open_issue,
        open_pull,
        close_issue,
        push,
        star,
    ],
    volumes={
        Account: 500_000,
        Membership: 800_000,
        Repo: per(Account, 5),
        Issue: per(Repo, 60),
        PullRequest: per(Repo, 40),
        Comment: per(Issue, 4),
        Star: per(Repo, 10),
        Reaction: per(Comment, 0.5),
    },
    sizes={
        Account: 300,
        Membership: 120,
        Repo: 500,
        Issue: 1_200,
        PullRequest: 1_500,
        Comment: 600,
        Star: 120,
        Reaction: 120,
    },
)

EXPECTED = {
    "max_indexes": 2,
    "published_indexes": 4,
    "entities": {
        "Account": {"partition": ["account"], "sort": []},
        "Membership": {"partition": ["organisation"], "sort": ["username"]},
        "Repo": {"partition": ["owner", "repo"], "sort": []},
        "Issue": {"partition": ["owner", "repo"], "sort": ["number"]},
        "PullRequest": {
            "partition": ["owner", "repo"],
            "sort": ["number"],
            "or": [{"partition": ["owner", "repo", "number"], "sort": []}],
        },
        "Comment": {"partition": ["owner", "repo", "number"], "sort": ["comment_id"]},
        "Star": {"partition": ["owner", "repo"], "sort": ["username"]},
        "Reaction": {"partition": ["target", "username", "emoji"], "sort": []},
    },
    "patterns": {
        "account": {"by": "base"},
        "account_with_repos": {"by": "index", "partition": ["account"], "sort": []},
        "repos_of_account": {
            "by": "index",
            "partition": ["account"],
            "sort": ["updated_at"],
            "shares_with": "account_with_repos",
        },
        "members_of": {"by": "base"},
        "repo": {"by": "base"},
        "newest_issues": {"by": "base"},
        "issue": {"by": "base"},
        "issues_by_status": {
            "by": "index",
            "partition": ["owner", "repo", "status"],
            "sort": ["number"],
            "or": [{"by": "index", "partition": ["owner", "repo"], "sort": ["status", "number"]}],
        },
        "newest_pulls": {
            "by": "base",
            "or": [{"by": "index", "partition": ["owner", "repo"], "sort": ["number"]}],
        },
        "pull": {"by": "base"},
        "pulls_by_status": {
            "by": "index",
            "partition": ["owner", "repo", "status"],
            "sort": ["number"],
            "or": [{"by": "index", "partition": ["owner", "repo"], "sort": ["status", "number"]}],
        },
        "comments_of": {"by": "base"},
        "stargazers": {"by": "base"},
        "forks_of": {"by": "index", "partition": ["fork_of"], "sort": ["owner"], "sparse": True},
        "has_reacted": {"by": "base"},
    },
}
WHY = {
    "PullRequest": "The book moves pull requests to an index because issues already take one "
    "end of "
    "the repository's partition and stars the other. With an entity prefix in the partition "
    "or a sort "
    "range by entity there is no such conflict, so no index is needed.",
    "max_indexes": "The book numbers four; forks and repositories are the only entity with "
    "two lists.",
    "Repo": "The book stores owner in the key and uses the account in the third index.",
}
