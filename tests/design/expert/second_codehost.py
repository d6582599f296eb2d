"""A code host: owners, repositories, issues, comments, stars. The second expert's."""

# ruff: noqa: E711 - a comparison makes a condition

from datetime import datetime
from typing import Literal

from stator import (
    Bundle2,
    Design,
    Entity,
    Only,
    Query,
    counter,
    created,
    creates,
    deletes,
    distinct,
    find,
    ident,
    largest,
    per,
    read,
    share,
    together,
    unique,
    updates,
    write,
)


class Owner(Entity):
    login: str = ident()
    email: str = unique()
    name: str
    bio: str | None = None


class Repo(Entity):
    owner: str = ident()
    name: str = ident()
    description: str
    language: str
    stars: int = counter()
    pushed_at: datetime
    settings: dict[str, str]


class Issue(Entity):
    owner: str = ident()
    repo: str = ident()
    number: int = ident()
    title: str
    body: str
    author: str
    state: Literal["open", "closed"] = "open"
    assignee: str | None = None
    comments: int = counter()
    created_at: datetime = created()
    updated_at: datetime


class Comment(Entity):
    owner: str = ident()
    repo: str = ident()
    number: int = ident()
    comment_id: str = ident()
    author: str
    at: datetime
    body: str


class Star(Entity):
    owner: str = ident()
    repo: str = ident()
    login: str = ident()
    at: datetime


@read(rps=800)
def owner(login: str) -> Query[Owner]:
    return find(Owner).where(Owner.login == login)


@read(rps=40)
def owner_by_email(email: str) -> Query[Owner]:
    return find(Owner).where(Owner.email == email)


@read(rps=2000)
def repo(owner: str, name: str) -> Query[Repo]:
    return find(Repo).where(Repo.owner == owner, Repo.name == name)


@read(rps=300, returns=4)
def repos_of(owner: str) -> Only[tuple[str, str, int, datetime]]:
    mine = find(Repo).where(Repo.owner == owner).newest_first(Repo.pushed_at).limit(30)
    return mine.only(Repo.name, Repo.description, Repo.stars, Repo.pushed_at)


@read(rps=400, returns=5)
def issue_page(owner: str, repo: str, number: int) -> Bundle2[Issue, Comment]:
    return together(Issue, Comment).where(
        Issue.owner == owner, Issue.repo == repo, Issue.number == number
    )


@read(rps=500, returns=2)
def open_issues(owner: str, repo: str) -> Only[tuple[int, str, str, int, datetime]]:
    opened = find(Issue).where(Issue.owner == owner, Issue.repo == repo, Issue.state == "open")
    return (
        opened.newest_first(Issue.created_at)
        .limit(25)
        .only(Issue.number, Issue.title, Issue.author, Issue.comments, Issue.created_at)
    )


@read(rps=60, returns=5)
def assigned_to(login: str) -> Query[Issue]:
    mine = find(Issue).where(Issue.assignee == login, Issue.state == "open")
    return mine.newest_first(Issue.updated_at).limit(25)


@read(rps=50, returns=10)
def stargazers(owner: str, repo: str) -> Query[Star]:
    return find(Star).where(Star.owner == owner, Star.repo == repo).newest_first(Star.at).limit(30)


@read(rps=80, returns=30)
def starred_by(login: str) -> Query[Star]:
    return find(Star).where(Star.login == login).newest_first(Star.at).limit(30)


@read(rps=900)
def has_starred(owner: str, repo: str, login: str) -> Query[Star]:
    return find(Star).where(Star.owner == owner, Star.repo == repo, Star.login == login)


@read(rps=10, returns=20)
def comments_by(author: str) -> Only[tuple[str, str, int, datetime]]:
    mine = find(Comment).where(Comment.author == author).newest_first(Comment.at).limit(20)
    return mine.only(Comment.owner, Comment.repo, Comment.number, Comment.at)


@write(rps=3)
def sign_up() -> object:
    return creates(Owner)


@write(rps=6)
def create_repo() -> object:
    return creates(Repo)


@write(rps=300)
def push() -> object:
    return updates(Repo.pushed_at)


@write(rps=30)
def open_issue() -> object:
    return creates(Issue)


@write(rps=120)
def comment() -> object:
    return creates(Comment), updates(Issue.comments, Issue.updated_at)


@write(rps=24)
def close_issue() -> object:
    return updates(
        Issue.state, Issue.updated_at, before=Issue.state == "open", after=Issue.state == "closed"
    )


@write(rps=15)
def assign() -> object:
    return updates(Issue.assignee, Issue.updated_at)


@write(rps=60)
def star() -> object:
    return creates(Star), updates(Repo.stars)


@write(rps=8)
def unstar() -> object:
    return deletes(Star), updates(Repo.stars)


design = Design(
    "codehost",
    [Owner, Repo, Issue, Comment, Star],
    [
        owner,
        owner_by_email,
        repo,
        repos_of,
        issue_page,
        open_issues,
        assigned_to,
        stargazers,
        starred_by,
        has_starred,
        comments_by,
        sign_up,
        create_repo,
        push,
        open_issue,
        comment,
        close_issue,
        assign,
        star,
        unstar,
    ],
    volumes={
        Owner: 5_000_000,
        Repo: per(Owner, 4),
        Issue: per(Repo, 5),
        Comment: per(Issue, 4),
        Star: per(Repo, 10),
    },
    sizes={Owner: 600, Repo: 900, Issue: 3_000, Comment: 1_500, Star: 200},
    facts=[
        share(Issue.state == "open", 0.25),
        share(Issue.assignee == None, 0.8),
        distinct(Issue.assignee, values=800_000),
        distinct(Comment.author, values=3_000_000),
        distinct(Star.login, values=4_000_000),
        distinct(Repo.owner, values=5_000_000),
        distinct(Star.owner, Star.repo, values=6_000_000),
        distinct(Issue.owner, Issue.repo, values=15_000_000),
        distinct(Issue.owner, values=4_000_000),
        largest(Star.repo, 0.002),
    ],
)

EXPECTED = {
    "entities": {
        "Owner": {"partition": ["login"], "sort": []},
        "Repo": {
            "partition": ["owner"],
            "sort": ["name"],
            "or": [{"partition": ["owner", "name"], "sort": []}],
        },
        "Issue": {"partition": ["owner", "repo", "number"], "sort": []},
        "Comment": {"partition": ["owner", "repo", "number"], "sort": ["comment_id"]},
        "Star": {"partition": ["owner", "repo"], "sort": ["login"]},
    },
    "patterns": {
        "owner": {"by": "base"},
        "owner_by_email": {"by": "guard"},
        "repo": {"by": "base"},
        "repos_of": {
            "by": "index",
            "partition": ["owner"],
            "sort": ["pushed_at"],
            "projection": "INCLUDE",
        },
        "issue_page": {"by": "base"},
        "open_issues": {
            "by": "index",
            "partition": ["state", "owner", "repo"],
            "sort": ["created_at"],
            "projection": "INCLUDE",
        },
        "assigned_to": {"by": "index", "partition": ["state", "assignee"], "sort": ["updated_at"]},
        "stargazers": {"by": "index", "partition": ["owner", "repo"], "sort": ["at"]},
        "starred_by": {"by": "index", "partition": ["login"], "sort": ["at"]},
        "has_starred": {"by": "base"},
        "comments_by": {
            "by": "index",
            "partition": ["author"],
            "sort": ["at"],
            "projection": "INCLUDE",
        },
    },
}
WHY = {
    "open_issues": (
        "Sparse: a quarter of the issues are open. Owner and repository both "
        "stand in the partition, because an organisation has thousands of "
        "repositories. "
    ),
}
