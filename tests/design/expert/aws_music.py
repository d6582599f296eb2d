"""Published: the music table of the DynamoDB developer guide."""

from stator import (
    Design,
    Entity,
    Query,
    attr,
    creates,
    distinct,
    find,
    ident,
    read,
    write,
)

SOURCE = (
    "AWS developer guide, Music table. From memory; confidence high. Artist, then song title; "
    "a global "
    "index by genre, then album title."
)


class Song(Entity):
    artist: str = ident()
    song_title: str = ident()
    album_title: str
    genre: str
    year: int
    price_cents: int


@read(rps=100)
def song(artist: str, song_title: str) -> Query[Song]:
    return find(Song).where(Song.artist == artist, Song.song_title == song_title)


@read(rps=40, returns=60)
def songs_of(artist: str) -> Query[Song]:
    return find(Song).where(Song.artist == artist)


@read(rps=5, returns=8)
def songs_of_with_prefix(artist: str, prefix: str) -> Query[Song]:
    return find(Song).where(Song.artist == artist, attr(Song.song_title).begins_with(prefix))


@read(rps=10, returns=200)
def songs_of_genre(genre: str) -> Query[Song]:
    return find(Song).where(Song.genre == genre).order_by(Song.album_title).limit(200)


@read(rps=10, returns=12)
def songs_of_genre_and_album(genre: str, album_title: str) -> Query[Song]:
    return find(Song).where(Song.genre == genre, Song.album_title == album_title)


@write(rps=2)
def add_song() -> object:
    return creates(Song)


design = Design(
    "aws_music",
    [Song],
    [song, songs_of, songs_of_with_prefix, songs_of_genre, songs_of_genre_and_album, add_song],
    facts=[
        distinct(Song.artist, values=80_000),
        distinct(Song.genre, values=40),
    ],
    volumes={Song: 5_000_000},
    sizes={Song: 220},
)

EXPECTED = {
    "max_indexes": 1,
    "entities": {"Song": {"partition": ["artist"], "sort": ["song_title"]}},
    "patterns": {
        "song": {"by": "base"},
        "songs_of": {"by": "base"},
        "songs_of_with_prefix": {"by": "base"},
        "songs_of_genre": {"by": "index", "partition": ["genre"], "sort": ["album_title"]},
        "songs_of_genre_and_album": {
            "by": "index",
            "partition": ["genre"],
            "sort": ["album_title"],
            "shares_with": "songs_of_genre",
        },
    },
}
WHY = {
    "songs_of_genre": "A genre has few values and large collections, but two writes a second heat "
    "nothing: one index, no shards.",
}
