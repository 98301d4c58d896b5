"""Kernels for one call. What is called often, as on the batches of a stream, keeps what they load: `Tokenizer`, `Tagger`, `Maps`, `Negatives`."""

from typing import Unpack

from ._engraft import Batches, Maps, Negatives, Tagger, Tokenizer
from ._types import AnyPath, Case, MapsSettings, NegativesSettings, Offsets, Table, TaggerSettings, Texts


def tokenize(
    texts: Texts,
    vocabulary: AnyPath | Tokenizer,
    *,
    case: Case | None = None,
    max_tokens: int | None = None,
    offsets: Offsets | None = "characters",
    column: str | None = None,
) -> Batches:
    """The tokens of each text by the vocabulary at a path, or by a `Tokenizer`: `Tokenizer.encode` says what comes of it.

    >>> engraft.tokenize(["Fever and pain."], "out/vocabulary")
    <engraft.Batches of 1 rows: row, input_ids, starts, ends>
    """
    if isinstance(vocabulary, Tokenizer):
        if case is not None:
            raise TypeError("case: expected nothing beside a Tokenizer, which has its own")
        tokenizer = vocabulary
    else:
        tokenizer = Tokenizer(vocabulary, case=case)
    return tokenizer.encode(texts, max_tokens=max_tokens, offsets=offsets, column=column)


def tag(texts: Texts, triples: AnyPath, *, column: str | None = None, **settings: Unpack[TaggerSettings]) -> Batches:
    """Where texts name entities of the graph in the folder `triples`: `Tagger.tag` says what comes of it, `Tagger` which settings there are.

    >>> engraft.tag(["Fever and pain."], "out/triples", min_letters=4)
    <engraft.Batches of 2 rows: row, mention, candidate, start, end, byte_start, byte_end, text, how, entity, name, types, ...>
    """
    return Tagger(triples, **settings).tag(texts, column=column)


def maps(
    texts: Texts,
    vocabulary: AnyPath,
    triples: AnyPath | None = None,
    counts: AnyPath | None = None,
    pmi: AnyPath | None = None,
    *,
    case: Case | None = None,
    column: str | None = None,
    **settings: Unpack[MapsSettings],
) -> Batches:
    """The samples that the stage `maps` makes of texts: `Maps.make` says what comes of it, `Maps` which settings there are and what they need.

    >>> engraft.maps(["Fever and pain. No cough."], "out/vocabulary", "out/triples", phrases="none", terms="none")
    <engraft.Batches of 2 rows: row, chunk, real, auxiliary, cut, input_ids, token_type_ids, words, entities, phrases, types, ...>
    """
    return Maps(vocabulary, triples, counts, pmi, case=case, **settings).make(texts, column=column)


def negatives(rows: Table, *, triples: AnyPath, per: int = 1, seed: int = 0, **settings: Unpack[NegativesSettings]) -> Batches:
    """Negatives of triples that the graph in the folder `triples` does not state: `Negatives.draw` says what comes of it.

    >>> rows = engraft.triples("hsdn", path="hsdn/Combined-Input.tsv")
    >>> engraft.negatives(rows, triples="out/triples", per=2, seed=1)
    <engraft.Batches of 4000 rows: row, subject, relation, object, subject_text, relation_text, object_text, replaced>
    """
    return Negatives(triples, per=per, seed=seed, **settings).draw(rows)
