"""The in-graph executor of WordPiece: strings to ids by core TensorFlow ops.

It works inside tf.data and in a SavedModel, without tensorflow-text, lookup tables or
state, so that any TensorFlow runtime serves it. TensorFlow is imported when a
`WordPieceGraph` is made, never before.

Letters of comments: T texts, C code points, U units (normalised characters; see
`graph_tables.py`), W words.
"""

import re
from typing import TYPE_CHECKING, Any

from kbert.tokenization import unicode_tables as unicode
from kbert.tokenization.graph_tables import SPACE, PagedTable, build_tables
from kbert.tokenization.trie import CONTINUATION_ROOT, ROOT

if TYPE_CHECKING:
    from kbert.tokenization.wordpiece import BertTokenizer

# Control characters that no text means anything by: the rule drops them. They mark
# special tokens; a text's own ones are replaced first, so that nobody can forge them.
_BEGIN, _END, _HARMLESS = "\x01", "\x02", "\x03"
# The n-th special token becomes this code point plus n, behind `_BEGIN`.
_FIRST_SPECIAL = 0x10000


class WordPieceGraph:
    """Turns string tensors into ids, equal to those of the tokenizer it is made from.

    Bytes that are not UTF-8 are read as U+FFFD, one for each invalid sequence, which
    the rule drops. XLA compiles no strings: keep this outside of `jit_compile`.

    Args:
        tokenizer: gives the vocabulary and the rule.

    Raises:
        ImportError: if TensorFlow is not installed.
    """

    def __init__(self, tokenizer: "BertTokenizer"):
        try:
            import tensorflow as tf
        except ImportError as error:
            raise ImportError(
                "Tokenization inside a TensorFlow graph needs TensorFlow. Received: "
                f"{error}. Install tensorflow, or call the tokenizer itself."
            ) from error
        self._tf: Any = tf
        normalizer = tokenizer.normalizer
        specials = tokenizer.special_pieces if tokenizer.special_tokens_in_text else ()
        self._specials = specials
        self._lowercase = normalizer.lowercase
        self._unk_id = tokenizer.unk_id
        self._max_word_length = tokenizer.max_word_length
        self._tables = build_tables(
            {piece: i for i, piece in enumerate(tokenizer.vocabulary)},
            normalizer,
            [tokenizer.piece_to_id(piece) for piece in specials],
        )
        # One graph function of its own: the tables are constants of that graph, and
        # are not copied for every call.
        self._flat = tf.function(
            self._tokenize,
            input_signature=[tf.TensorSpec([None], tf.string)],
            autograph=False,
        )

    def __call__(self, texts):
        """Turns texts into ids, without [CLS] and [SEP].

        Args:
            texts: a string tensor, or what `tf.convert_to_tensor` makes one of:
                scalar, (T,) or (T, K).

        Returns:
            int32 ids: a tensor (pieces,) for a scalar, a `tf.RaggedTensor` (T, None)
            or (T, K, None) otherwise.

        Raises:
            TypeError: if the tensor does not hold strings.
            ValueError: if it has more than two axes.
        """
        tf = self._tf
        texts = tf.convert_to_tensor(texts)
        if texts.dtype != tf.string:
            raise TypeError(
                f"`texts` must be a string tensor. Received: dtype {texts.dtype.name}."
            )
        rank = texts.shape.rank
        if rank is None or rank > 2:
            raise ValueError(
                "`texts` must be a scalar, or have one or two axes. Received: shape "
                f"{texts.shape}."
            )
        ids, row_splits = self._flat(tf.reshape(texts, [-1]))
        if rank == 0:
            return ids
        ragged = tf.RaggedTensor.from_row_splits(ids, row_splits, validate=False)
        if rank == 1:
            return ragged
        shape = tf.shape(texts, out_type=tf.int64)
        return tf.RaggedTensor.from_uniform_row_length(ragged, shape[1], shape[0])

    def _tokenize(self, texts):
        """Turns (T,) strings into flat ids and int64 row splits (T + 1,)."""
        tf = self._tf
        num_texts = tf.size(texts, out_type=tf.int64)
        codes, rows = self._code_points(texts)
        units, rows = self._normalize(codes, rows)
        # A word starts at every lone unit, and at any other that follows no other.
        lone = (units != SPACE) & (units <= self._tables.last_lone)
        inner = units > self._tables.last_lone
        follows = tf.concat([[False], inner[:-1]], 0)[: tf.size(units)]
        new_row = tf.concat([[True], rows[1:] != rows[:-1]], 0)[: tf.size(units)]
        starts = lone | (inner & (~follows | new_row))
        keep = tf.where(units != SPACE)[:, 0]
        units, rows = tf.gather(units, keep), tf.gather(rows, keep)
        begins = tf.cast(tf.where(tf.gather(starts, keep))[:, 0], tf.int32)
        ends = tf.concat([begins[1:], [tf.size(units)]], 0)[: tf.size(begins)]
        ids = self._longest_match(units, begins, ends)  # (U,), -1 where no piece starts
        found = tf.where(ids >= 0)[:, 0]
        ids, rows = tf.gather(ids, found), tf.gather(rows, found)
        row_splits = tf.searchsorted(rows, tf.range(num_texts + 1), out_type=tf.int64)
        return ids, row_splits

    def _code_points(self, texts):
        """Decodes (T,) strings: code points (C,) and the text of each, int64 (C,)."""
        tf = self._tf
        if self._specials:
            texts = self._mark_specials(texts)
        ragged = tf.strings.unicode_decode(texts, "UTF-8", errors="replace")
        codes, rows = ragged.flat_values, ragged.value_rowids()
        if not self._specials:
            return codes, rows
        # A mark and the number behind it become one code point beyond Unicode.
        begins = tf.where(codes == ord(_BEGIN))
        numbers = tf.gather(codes, begins[:, 0] + 1) - _FIRST_SPECIAL
        codes = tf.tensor_scatter_nd_update(
            codes, begins, unicode.NUM_CODE_POINTS + numbers
        )
        dropped = tf.fill(tf.shape(begins)[:1], ord(_HARMLESS))
        return tf.tensor_scatter_nd_update(codes, begins + 1, dropped), rows

    def _mark_specials(self, texts):
        """Replaces special tokens by a mark and a number: leftmost, then longest."""
        tf = self._tf
        texts = tf.strings.regex_replace(texts, f"[{_BEGIN}{_END}]", _HARMLESS)
        # Longest first: the first alternative that matches is taken.
        longest_first = sorted(self._specials, key=len, reverse=True)
        alternatives = "|".join(map(_quote, longest_first))
        texts = tf.strings.regex_replace(
            texts, f"({alternatives})", rf"{_BEGIN}\1{_END}"
        )
        for number, special in enumerate(self._specials):
            marked = f"{_BEGIN}{_quote(special)}{_END}"
            texts = tf.strings.regex_replace(
                texts, marked, _BEGIN + chr(_FIRST_SPECIAL + number)
            )
        return texts

    def _normalize(self, codes, rows):
        """Turns code points into units: (C,) and (C,) become (U,) and (U,)."""
        tf = self._tf
        symbols = self._look_up(self._tables.symbols, codes)
        return tf.cond(
            tf.reduce_all(symbols < self._tables.num_units),
            lambda: (symbols, rows),  # most text: each character becomes one unit
            lambda: self._expand(codes, symbols, rows),
        )

    def _expand(self, codes, symbols, rows):
        """Does what a table by character cannot: sigmas, expansions, reordering."""
        tf, tables = self._tf, self._tables
        if self._lowercase:
            codes = tf.cond(
                tf.reduce_any(codes == ord(unicode.CAPITAL_SIGMA)),
                lambda: self._end_sigmas(codes, rows),
                lambda: codes,
            )
            symbols = self._look_up(tables.symbols, codes)
        plain = symbols < tables.num_units
        expansion = tf.maximum(symbols - tables.num_units, 0)
        first = tf.gather(tables.expansion_starts, expansion)
        lengths = tf.gather(tables.expansion_starts, expansion + 1) - first
        lengths = tf.where(plain, 1, lengths)
        source = tf.repeat(tf.range(tf.size(codes)), lengths)
        place = first - tf.cumsum(lengths, exclusive=True)
        place = tf.gather(place, source) + tf.range(tf.size(source))
        is_plain = tf.gather(plain, source)
        units = tf.where(
            is_plain,
            tf.gather(symbols, source),
            tf.gather(tables.expansion_units, tf.where(is_plain, 0, place)),
        )
        rows = tf.gather(rows, source)
        combining = tf.gather(tables.combining, units)
        units = tf.cond(
            tf.reduce_any(combining > 0),
            lambda: self._reorder(units, combining, rows),
            lambda: units,
        )
        keep = units != tables.num_units
        return tf.boolean_mask(units, keep), tf.boolean_mask(rows, keep)

    def _end_sigmas(self, codes, rows):
        """Replaces capital sigmas at the end of a word, as `Normalizer.end_sigmas`."""
        tf = self._tf
        casing = self._look_up(self._tables.casing, codes)
        # What stands beside each other once the ignorable characters are gone.
        places = tf.where(casing != unicode.CASE_IGNORABLE)
        cased = tf.gather(casing, places[:, 0]) == unicode.CASED
        row = tf.gather(rows, places[:, 0])
        sigma = tf.gather(codes, places[:, 0]) == ord(unicode.CAPITAL_SIGMA)
        same = row[1:] == row[:-1]
        before = tf.concat([[False], cased[:-1] & same], 0)
        after = tf.concat([cased[1:] & same, [False]], 0)
        final = tf.boolean_mask(places, sigma & before & ~after)
        replaced = tf.fill(tf.shape(final)[:1], ord(unicode.FINAL_SIGMA))
        return tf.tensor_scatter_nd_update(codes, final, replaced)

    def _reorder(self, units, combining, rows):
        """Puts runs of combining marks into canonical order, as `reorder`."""
        tf = self._tf
        new_row = tf.concat([[True], rows[1:] != rows[:-1]], 0)
        run = tf.cumsum(tf.cast((combining == 0) | new_row, tf.int64))
        marks = tf.where(combining > 0)
        keys = run * 256 + tf.cast(combining, tf.int64)
        order = tf.argsort(tf.gather(keys, marks[:, 0]), stable=True)
        ordered = tf.gather(tf.gather(units, marks[:, 0]), order)
        return tf.tensor_scatter_nd_update(units, marks, ordered)

    def _longest_match(self, units, begins, ends):
        """Cuts all words at once: the id at every unit that begins a piece, else -1.

        Every word walks the trie from where its next piece begins. Where the walk
        ends, the longest piece passed is kept, and the word goes on behind it.
        """
        tf, trie = self._tf, self._tables.trie
        all_begins = begins
        fits = ends - begins <= self._max_word_length
        unknown = tf.boolean_mask(begins, ~fits)
        begins, ends = tf.boolean_mask(begins, fits), tf.boolean_mask(ends, fits)
        ids = tf.fill(tf.shape(units), -1)

        def step(ids, unknown, word, end, start, at, state, best, best_end):
            letter = tf.gather(units, at)
            target = tf.gather(trie.base, state) + letter
            passes = tf.gather(trie.check, target) == state
            piece = tf.where(passes, tf.gather(trie.ids, target), -1)
            at += 1
            best_end = tf.where(piece >= 0, at, best_end)
            best = tf.where(piece >= 0, piece, best)
            state = target
            walks = passes & (at < end)
            cut = ~walks
            ids = put(ids, start, best, cut & (best >= 0))
            # A word with a stretch that no piece spells is unknown as a whole.
            fails = cut & (best < 0)
            unknown = tf.concat([unknown, tf.boolean_mask(word, fails)], 0)
            start = tf.where(cut, best_end, start)
            at = tf.where(cut, best_end, at)
            state = tf.where(cut, CONTINUATION_ROOT, state)
            best = tf.where(cut, -1, best)
            stays = tf.where(~fails & (at < end))[:, 0]
            columns = (word, end, start, at, state, best, best_end)
            return (ids, unknown, *(tf.gather(column, stays) for column in columns))

        def put(ids, places, values, where):
            chosen = tf.where(where)[:, 0]
            return tf.tensor_scatter_nd_update(
                ids, tf.gather(places, chosen)[:, None], tf.gather(values, chosen)
            )

        roots, none = tf.fill(tf.shape(begins), ROOT), tf.fill(tf.shape(begins), -1)
        walks = (ids, unknown, begins, ends, begins, begins, roots, none, begins)
        ids, unknown, *_ = tf.while_loop(
            lambda ids, unknown, word, *_: tf.size(word) > 0,
            step,
            walks,
            shape_invariants=(tf.TensorShape([None]),) * len(walks),
        )
        return tf.cond(
            tf.size(unknown) > 0,
            lambda: self._forget_unknown(ids, unknown, all_begins),
            lambda: ids,
        )

    def _forget_unknown(self, ids, unknown, begins):
        """Leaves of every unknown word one id, where the word begins."""
        tf = self._tf
        is_begin = tf.tensor_scatter_nd_update(
            tf.zeros_like(ids), begins[:, None], tf.ones_like(begins)
        )
        word = tf.cumsum(is_begin) - 1  # (U,)
        is_unknown = tf.tensor_scatter_nd_update(
            tf.zeros_like(ids), unknown[:, None], tf.ones_like(unknown)
        )
        is_unknown = tf.gather(tf.gather(is_unknown, begins), word)
        ids = tf.where(is_unknown > 0, -1, ids)
        ids_of_unknown = tf.fill(tf.shape(unknown), self._unk_id)
        return tf.tensor_scatter_nd_update(ids, unknown[:, None], ids_of_unknown)

    def _look_up(self, table: PagedTable, codes):
        """Reads a paged table: int32 (C,) for code points (C,)."""
        tf = self._tf
        page = tf.gather(table.page, tf.bitwise.right_shift(codes, 7))
        return tf.gather(table.values, page + tf.bitwise.bitwise_and(codes, 127))


def _quote(text: str) -> str:
    """Escapes a literal for RE2."""
    return re.sub(r"([^\w\s])", r"\\\1", text, flags=re.ASCII)
