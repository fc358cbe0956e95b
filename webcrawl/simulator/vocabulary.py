"""Words and sentences for generated pages: twelve topics, each with a vocabulary of its own.

Only `Random.random()` is asked for chance: its sequence is the same in every Python version, so the text is too.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from random import Random
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

PARAGRAPHS = 400  # in a topic's pool; a page shows about 15 of them, so two pages of a topic share few


@dataclass(frozen=True)
class Topic:
    """What the pages of a host are about; the first noun is the topic's name."""

    nouns: tuple[str, ...]
    adjectives: tuple[str, ...]
    verbs: tuple[str, ...]
    places: tuple[str, ...]


def _words(text: str) -> tuple[str, ...]:
    return tuple(text.split())


def _topic(nouns: str, adjectives: str, verbs: str, places: str) -> Topic:
    return Topic(_words(nouns), _words(adjectives), _words(verbs), tuple(places.split(", ")))


TOPICS = (
    _topic(
        "harbour lighthouse pier tide anchor trawler buoy captain sail current dock beacon crew rudder chart lagoon",
        "salty calm stormy narrow deep northern weathered foggy sheltered coastal",
        "guided moored repaired signalled carried crossed measured sheltered watched followed",
        "along the quay, beyond the breakwater, below the cliffs, at the mouth of the river, off the southern cape",
    ),
    _topic(
        "garden orchard hedge rose trellis compost seedling gardener pond terrace bulb meadow fern arbour nursery path",
        "shady blooming damp fragrant walled early evergreen tangled sunny wild",
        "watered planted pruned covered shaded gathered grafted sowed trimmed sheltered",
        "behind the greenhouse, under the pear trees, beside the pond, on the south wall, in the kitchen garden",
    ),
    _topic(
        "kitchen oven recipe bread cook pastry kettle spice broth pantry ladle menu harvest dough table cellar",
        "warm crusty bitter sweet roasted simple slow golden peppery fresh",
        "baked stirred seasoned tasted served kneaded filled simmered sliced shared",
        "in the bakery, over a low fire, at the long table, near the window, in a copper pan",
    ),
    _topic(
        "railway station engine timetable tunnel signal viaduct conductor platform carriage junction whistle bridge "
        "ticket track freight",
        "rural punctual narrow electric crowded disused mountain late northbound iron",
        "connected delayed crossed inspected carried joined passed extended repaired announced",
        "past the old depot, through the valley, at the border, between the two cities, on the branch line",
    ),
    _topic(
        "observatory telescope comet orbit planet astronomer nebula eclipse lens meteor moon crater spectrum star "
        "catalogue dome",
        "distant faint bright double spiral frozen rotating red southern lunar",
        "observed measured discovered eclipsed photographed predicted resolved attracted recorded outshone",
        "above the horizon, in the winter sky, near the galactic plane, beyond the dust cloud, from the summit",
    ),
    _topic(
        "orchestra violin concert melody conductor rehearsal overture choir drum score festival quartet flute theatre "
        "chorus tempo",
        "quiet rhythmic baroque solemn lively muted popular slow resonant modern",
        "performed tuned composed accompanied rehearsed recorded opened followed echoed praised",
        "in the old town hall, during the summer festival, before a full house, on the balcony, behind the stage",
    ),
    _topic(
        "mountain glacier summit ridge hut climber rope valley avalanche pass boulder trail marmot crevasse guide map",
        "steep snowy exposed rocky high remote icy granite alpine lonely",
        "climbed crossed reached marked secured covered blocked overlooked descended surveyed",
        "above the tree line, on the north face, below the saddle, at first light, across the scree",
    ),
    _topic(
        "library archive manuscript shelf catalogue reader librarian binding scroll margin index folio lamp atlas "
        "letter press",
        "rare dusty illustrated leather forgotten annotated borrowed medieval printed slim",
        "copied catalogued restored borrowed indexed translated collected quoted printed preserved",
        "in the reading room, on the upper gallery, among the letters, behind glass, in the second volume",
    ),
    _topic(
        "weather barometer cloud thunder forecast breeze front frost rainfall season fog balloon drought rainbow gauge "
        "station",
        "humid mild sudden severe persistent dry tropical autumn gusty record",
        "reached followed predicted measured covered weakened replaced flooded preceded cooled",
        "over the plains, along the coast, in the early hours, for nine days, across the whole county",
    ),
    _topic(
        "bicycle wheel workshop saddle spoke courier frame lane chain race pedal mechanic brake pump helmet tandem",
        "light rusty folding fast steel muddy commuter silent sturdy borrowed",
        "repaired overtook carried built adjusted painted tested bought joined crossed",
        "along the canal, in the repair shop, on the cobbled climb, across the old town, before the rain",
    ),
    _topic(
        "aviary heron nest warbler migration feather owl wetland flock ornithologist egg finch reed falcon song hide",
        "migratory shy crested grey nocturnal rare noisy spotted ringed young",
        "followed fed counted ringed watched startled sheltered hatched recorded attracted",
        "in the reed beds, at dusk, over the estuary, on the ringing station, near the feeding place",
    ),
    _topic(
        "pottery kiln glaze clay wheel bowl potter vase shard tile furnace pigment jar studio handle slip",
        "glazed fragile hollow cobalt rough fired delicate antique plain cracked",
        "shaped fired painted glazed cracked collected decorated stacked cooled traded",
        "in the village workshop, beneath the kiln, at the spring market, on the drying rack, among the shards",
    ),
)

_NAMES = _words(
    "Abara Almeida Andersen Asante Bakker Baptiste Bianchi Castillo Chen Cohen Dahl Dubois Eriksen Farah "
    "Ferrari Fischer Garcia Gruber Haddad Hansen Horvat Ibrahim Ivanova Jansen Kaya Keller Kim Kowalski Kumar "
    "Laine Lopez Mbeki Meyer Moreau Nakamura Novak Nunes Okafor Olsen Papadakis Park Pereira Petrov Quispe "
    "Rossi Saito Silva Singh Sokolov Suarez Tanaka Toth Tran Ueda Varga Weber Wong Yilmaz Zhang Zuniga"
)
_YEARS = tuple(str(year) for year in range(1780, 2020))

_SENTENCES = (
    "The {a} {n} {v} the {n} {p}.",
    "In {y} the {n} of {s} {v} a {n} {p}.",
    "Every {n} near the {a} {n} {v} a {n} {p}.",
    "{p}, the {n} {v} a {a} {n}.",
    "{s} and {s} {v} the {a} {n} until {y}.",
    "Nobody knew why the {n} {v} the {a} {n}, or who first {v} the {n}.",
    "When {s} {v} the {n}, a {a} {n} was found {p}.",
    "It was the {a} {n} that {v} the {n} &amp; the {n} {p}.",
    "Some say that the {n} {v} the {n}; {s} remembered only the {a} {n}.",
    "After the {a} {n} of {y}, each {n} {v} another {n} {p}.",
    "A {n} is rarely {a}, yet this one {v} the {a} {n}.",
    "Who {v} the {n} {p}, and why did the {a} {n} matter to {s}?",
    "There are {y} reasons to keep a {n}, wrote {s}, and the {a} {n} is one of them.",
    "Between {y} and {y} the {n} {v} three {a} neighbours.",
)


def pick(chance: Callable[[], float], choices: Sequence[str]) -> str:
    """One of the choices, each as likely as the others."""
    return choices[int(chance() * len(choices))]


def sentence(chance: Callable[[], float], topic: Topic) -> str:
    """One sentence about a topic, as HTML."""
    kinds = {
        "a": topic.adjectives, "n": topic.nouns, "v": topic.verbs, "p": topic.places, "s": _NAMES, "y": _YEARS,
    }  # fmt: skip
    first, *rest = pick(chance, _SENTENCES).split("{")
    parts = [first]
    for piece in rest:
        parts += pick(chance, kinds[piece[0]]), piece[2:]
    text = "".join(parts)
    return text[0].upper() + text[1:]


@lru_cache(maxsize=4 * len(TOPICS))
def paragraphs(seed: int, topic_number: int) -> tuple[str, ...]:
    """The pool of paragraphs of one topic, as HTML without tags."""
    chance = Random(seed * 1000 + topic_number).random
    topic = TOPICS[topic_number]
    return tuple(" ".join([sentence(chance, topic) for _ in range(4 + int(chance() * 5))]) for _ in range(PARAGRAPHS))
