"""A code host: owners, repositories, issues, pull requests, comments, stars."""

from datetime import datetime
from typing import Literal

from stator import (
    Bundle2,
    Design,
    Entity,
    Only,
    Query,
    attr,
    counter,
    creates,
    deletes,
    distinct,
    find,
    ident,
    per,
    read,
    share,
    together,
    unique,
    updates,
    write,
)

State = Literal["open", "closed"]


class User(Entity):
    user_id: str = ident()
    email: str = unique()
    name: str


class Owner(Entity):
    owner: str = ident()
    kind: Literal["user", "organisation"]
    display_name: str


class Repo(Entity):
    owner: str = ident()
    repo: str = ident()
    description: str
    stars: int = counter()
    pushed_at: datetime


class Issue(Entity):
    owner: str = ident()
    repo: str = ident()
    number: int = ident()
    status: State
    author: str
    title: str
    body: str
    created_at: datetime


class PullRequest(Entity):
    owner: str = ident()
    repo: str = ident()
    number: int = ident()
    status: State
    author: str
    reviewer: str | None = None  # present only while a review is waited for
    title: str
    body: str
    created_at: datetime


class Comment(Entity):
    owner: str = ident()
    repo: str = ident()
    number: int = ident()  # of the issue or the pull request: they share one sequence
    comment_id: str = ident()  # a ULID: sorts by time
    author: str
    text: str


class Star(Entity):
    owner: str = ident()
    repo: str = ident()
    user_id: str = ident()
    starred_at: datetime


@read(rps=400)
def user_by_id(user_id: str) -> Query[User]:
    return find(User).where(User.user_id == user_id)


@read(rps=60)
def user_by_email(email: str) -> Query[User]:
    return find(User).where(User.email == email)


@read(rps=150)
def owner_by_name(owner: str) -> Query[Owner]:
    return find(Owner).where(Owner.owner == owner)


@read(rps=900)
def repo_by_name(owner: str, repo: str) -> Query[Repo]:
    return find(Repo).where(Repo.owner == owner, Repo.repo == repo)


@read(rps=120, returns=6)
def repos_of_owner(owner: str) -> Query[Repo]:
    return find(Repo).where(Repo.owner == owner).newest_first(Repo.pushed_at).limit(30)


@read(rps=500, returns=6)
def issue_page(owner: str, repo: str, number: int) -> Bundle2[Issue, Comment]:
    return together(Issue, Comment).where(
        Issue.owner == owner, Issue.repo == repo, Issue.number == number
    )


@read(rps=200)
def issue_alone(owner: str, repo: str, number: int) -> Query[Issue]:
    return find(Issue).where(Issue.owner == owner, Issue.repo == repo, Issue.number == number)


@read(rps=300, returns=25)
def issues_by_status(owner: str, repo: str, status: State) -> Only[tuple[int, str, str, datetime]]:
    return (
        find(Issue)
        .where(Issue.owner == owner, Issue.repo == repo, Issue.status == status)
        .newest_first(Issue.created_at)
        .limit(25)
        .only(Issue.number, Issue.title, Issue.author, Issue.created_at)
    )


@read(rps=30, returns=25)
def issues_by_author(author: str) -> Only[tuple[str, str, int, str]]:
    return (
        find(Issue)
        .where(Issue.author == author)
        .newest_first(Issue.created_at)
        .limit(25)
        .only(Issue.owner, Issue.repo, Issue.number, Issue.title)
    )


@read(rps=250)
def pull_request(owner: str, repo: str, number: int) -> Query[PullRequest]:
    return find(PullRequest).where(
        PullRequest.owner == owner, PullRequest.repo == repo, PullRequest.number == number
    )


@read(rps=200, returns=25)
def pulls_by_status(owner: str, repo: str, status: State) -> Only[tuple[int, str, str, datetime]]:
    return (
        find(PullRequest)
        .where(PullRequest.owner == owner, PullRequest.repo == repo, PullRequest.status == status)
        .newest_first(PullRequest.created_at)
        .limit(25)
        .only(PullRequest.number, PullRequest.title, PullRequest.author, PullRequest.created_at)
    )


@read(rps=80, returns=6)
def pulls_waiting_for(reviewer: str) -> Query[PullRequest]:
    return (
        find(PullRequest)
        .where(PullRequest.reviewer == reviewer)
        .oldest_first(PullRequest.created_at)
    )


@read(rps=300, returns=5)
def comments_of(owner: str, repo: str, number: int) -> Query[Comment]:
    return (
        find(Comment)
        .where(Comment.owner == owner, Comment.repo == repo, Comment.number == number)
        .oldest_first(Comment.comment_id)
    )


@read(rps=600)
def has_starred(owner: str, repo: str, user_id: str) -> Query[Star]:
    return find(Star).where(Star.owner == owner, Star.repo == repo, Star.user_id == user_id)


@read(rps=10, returns=9)
def stargazers(owner: str, repo: str) -> Query[Star]:
    return find(Star).where(Star.owner == owner, Star.repo == repo).limit(50)


@read(rps=40, returns=18)
def starred_by(user_id: str) -> Query[Star]:
    return find(Star).where(Star.user_id == user_id).newest_first(Star.starred_at).limit(30)


@write(rps=25)
def open_issue() -> object:
    return creates(Issue)


@write(rps=20)
def open_pull() -> object:
    return creates(PullRequest)


@write(rps=18)
def close_issue() -> object:
    return updates(Issue.status)


@write(rps=18)
def close_pull() -> object:
    return updates(PullRequest.status, PullRequest.reviewer)


@write(rps=120)
def add_comment() -> object:
    return creates(Comment)


@write(rps=60)
def push() -> object:
    return updates(Repo.pushed_at)


@write(rps=40)
def star() -> object:
    return creates(Star), updates(Repo.stars)


@write(rps=5)
def unstar() -> object:
    return deletes(Star), updates(Repo.stars)


design = Design(
    "codehost",
    [User, Owner, Repo, Issue, PullRequest, Comment, Star],
    [
        user_by_id,
        user_by_email,
        owner_by_name,
        repo_by_name,
        repos_of_owner,
        issue_page,
        issue_alone,
        issues_by_status,
        issues_by_author,
        pull_request,
        pulls_by_status,
        pulls_waiting_for,
        comments_of,
        has_starred,
        stargazers,
        starred_by,
        open_issue,
        open_pull,
        close_issue,
        close_pull,
        add_comment,
        push,
        star,
        unstar,
    ],
    facts=[
        distinct(Issue.author, values=2_000_000),
        distinct(PullRequest.reviewer, values=200_000),
        share(attr(PullRequest.reviewer).exists(), 0.01),
        share(Issue.status == "open", 0.2),
        distinct(Star.user_id, values=3_000_000),
    ],
    volumes={
        User: 3_000_000,
        Owner: 1_000_000,
        Repo: per(Owner, 6),
        Issue: per(Repo, 60),
        PullRequest: per(Repo, 50),
        Comment: per(Issue, 5),
        Star: per(Repo, 9),
    },
    sizes={
        User: 400,
        Owner: 500,
        Repo: 900,
        Issue: 3_500,
        PullRequest: 4_500,
        Comment: 900,
        Star: 160,
    },
)

EXPECTED = {
    "max_indexes": 3,
    "entities": {
        "User": {"partition": ["user_id"], "sort": []},
        "Owner": {"partition": ["owner"], "sort": []},
        "Repo": {
            "partition": ["owner", "repo"],
            "sort": [],
            "or": [{"partition": ["owner"], "sort": ["repo"]}],
        },
        "Issue": {"partition": ["owner", "repo", "number"], "sort": []},
        "PullRequest": {
            "partition": ["owner", "repo", "number"],
            "sort": [],
            "or": [{"partition": ["owner", "repo"], "sort": ["number"]}],
        },
        "Comment": {"partition": ["owner", "repo", "number"], "sort": ["comment_id"]},
        "Star": {"partition": ["owner", "repo"], "sort": ["user_id"]},
    },
    "patterns": {
        "user_by_id": {"by": "base"},
        "user_by_email": {
            "by": "guard",
            "or": [{"by": "index", "partition": ["email"], "sort": []}],
        },
        "owner_by_name": {"by": "base"},
        "repo_by_name": {"by": "base"},
        "repos_of_owner": {"by": "index", "partition": ["owner"], "sort": ["pushed_at"]},
        "issue_page": {"by": "base"},
        "issue_alone": {"by": "base"},
        "issues_by_status": {
            "by": "index",
            "partition": ["owner", "repo", "status"],
            "sort": ["created_at"],
            "projection": "INCLUDE",
            "or": [
                {"by": "index", "partition": ["owner", "repo"], "sort": ["status", "created_at"]}
            ],
        },
        "issues_by_author": {
            "by": "index",
            "partition": ["author"],
            "sort": ["created_at"],
            "projection": "INCLUDE",
        },
        "pull_request": {"by": "base"},
        "pulls_by_status": {
            "by": "index",
            "partition": ["owner", "repo", "status"],
            "sort": ["created_at"],
            "projection": "INCLUDE",
            "or": [
                {"by": "index", "partition": ["owner", "repo"], "sort": ["status", "created_at"]}
            ],
        },
        "pulls_waiting_for": {
            "by": "index",
            "partition": ["reviewer"],
            "sort": ["created_at"],
            "sparse": True,
        },
        "comments_of": {"by": "base"},
        "has_starred": {"by": "base"},
        "stargazers": {"by": "base"},
        "starred_by": {"by": "index", "partition": ["user_id"], "sort": ["starred_at"]},
    },
}
WHY = {
    "Issue": "The page of one issue with its comments fixes the partition; the lists of a "
    "repository "
    "come from an index, so the whole identity is the finest partition that still serves "
    "everything.",
    "PullRequest": "No pattern reads several pull requests by the base key, so the whole "
    "identity is "
    "the partition; owner+repo then number would also do.",
    "Repo": "The list of an owner is ordered by push time, which is not in the identity, so "
    "the base "
    "key never lists.",
    "Star": "`stargazers` reads by repository and `has_starred` reads one, so the list decides.",
    "issues_by_status": "Bodies are 3.5 KB; 25 full items would cost 11 RCU a call, four "
    "fields cost 1.",
    "max_indexes": "Overloaded: (1) lists of a repository, starred_by; (2) author, repos_of_owner; "
    "(3) waiting reviews; two are possible. The lists that share an index with INCLUDE must "
    "not force ALL on it.",
}
