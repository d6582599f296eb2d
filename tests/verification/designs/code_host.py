"""A code host: owners, repositories, issues with comments, stars."""

from __future__ import annotations

from datetime import datetime
from typing import Literal

from stator import (
    Bundle2,
    Count,
    Design,
    Entity,
    Only,
    Query,
    attr,
    created,
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
    updated,
    updates,
    version,
    write,
)


class Owner(Entity):
    owner: str = ident()
    email: str = unique()
    display_name: str
    created_at: datetime = created()


class Repo(Entity):
    owner: str = ident()
    repo: str = ident()
    description: str
    language: str
    stars: int = 0
    is_private: bool = False
    pushed_at: datetime


class Issue(Entity):
    owner: str = ident()
    repo: str = ident()
    number: int = ident()
    author: str
    state: Literal["open", "closed"]
    title: str
    body: str
    labels: set[str]
    opened_at: datetime
    updated_at: datetime = updated()
    rev: int = version()


class Comment(Entity):
    owner: str = ident()
    repo: str = ident()
    number: int = ident()
    comment_id: str = ident()
    author: str
    text: str
    at: datetime


class Star(Entity):
    user: str = ident()
    owner: str = ident()
    repo: str = ident()
    at: datetime


@read(rps=300)
def repo_page(owner: str, repo: str) -> Query[Repo]:
    return find(Repo).where(Repo.owner == owner, Repo.repo == repo)


@read(rps=50, returns=8)
def repos_of_owner(owner: str) -> Query[Repo]:
    return find(Repo).where(Repo.owner == owner).newest_first(Repo.pushed_at)


@read(rps=120, returns=25)
def open_issues(owner: str, repo: str) -> Query[Issue]:
    return (
        find(Issue)
        .where(Issue.owner == owner, Issue.repo == repo, Issue.state == "open")
        .newest_first(Issue.opened_at)
        .limit(25)
    )


@read(rps=20)
def issue_count(owner: str, repo: str) -> Count[Issue]:
    return find(Issue).where(Issue.owner == owner, Issue.repo == repo).count()


@read(rps=100)
def issue_thread(owner: str, repo: str, number: int) -> Bundle2[Issue, Comment]:
    return together(Issue, Comment).where(
        Issue.owner == owner, Issue.repo == repo, Issue.number == number
    )


@read(rps=10, returns=30)
def issues_of_author(author: str) -> Only[tuple[str, str, int, str]]:
    mine = find(Issue).where(Issue.author == author).newest_first(Issue.opened_at).limit(30)
    return mine.only(Issue.owner, Issue.repo, Issue.number, Issue.title)


@read(rps=5, returns=6)
def labelled_issues(owner: str, repo: str, label: str) -> Query[Issue]:
    return (
        find(Issue)
        .where(Issue.owner == owner, Issue.repo == repo)
        .filter(attr(Issue.labels).contains(label))
    )


@read(rps=30, returns=20)
def starred_by(user: str) -> Query[Star]:
    return find(Star).where(Star.user == user).newest_first(Star.at).limit(20)


@read(rps=10)
def by_email(email: str) -> Query[Owner]:
    return find(Owner).where(Owner.email == email)


@write(rps=10)
def sign_up() -> object:
    return creates(Owner)


@write(rps=20)
def open_issue() -> object:
    return creates(Issue)


@write(rps=40)
def comment() -> object:
    return creates(Comment), updates(Issue.title)


@write(rps=10)
def close_issue() -> object:
    return updates(Issue.state)


@write(rps=15)
def star() -> object:
    return creates(Star), updates(Repo.stars)


@write(rps=1)
def unstar() -> object:
    return deletes(Star), updates(Repo.stars)


code_host = Design(
    "code_host",
    [Owner, Repo, Issue, Comment, Star],
    [
        repo_page, repos_of_owner, open_issues, issue_count, issue_thread, issues_of_author,
        labelled_issues, starred_by, by_email, sign_up, open_issue, comment, close_issue, star,
        unstar,
    ],
    volumes={
        Owner: 500_000, Repo: per(Owner, 8), Issue: per(Repo, 120), Comment: per(Issue, 4),
        Star: per(Owner, 40),
    },
    sizes={Issue: 2_500, Comment: 900},
    facts=[share(Issue.state == "open", 0.2), distinct(Issue.author, values=300_000)],
)  # fmt: skip
