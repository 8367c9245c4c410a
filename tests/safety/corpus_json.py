"""Hostile folders: JSON as such, sizes and types in it, names of code, vocabularies."""

from tests.safety.hostile import (
    Case,
    appended,
    content,
    drop_keys,
    each,
    signed,
    sparse,
    values,
    without,
)

CONFIG, SETTINGS, FAST = "config.json", "tokenizer_config.json", "tokenizer.json"
INDEX, ADDED = "model.safetensors.index.json", "added_tokens.json"
CODE = {"module": "os", "class_name": "system", "config": {"command": "true"}}
READERS = {
    CONFIG: "BCT",
    SETTINGS: "CT",
    FAST: "CT",
    ADDED: "CT",
    "kbert.json": "BCT",
    INDEX: "BC",
}
DEEP, DEEPER = 100_000, "nesting of|lists and objects: more"
JSON = {  # what the file holds: what its refusal says
    "empty": (b"", "must hold JSON"),
    "half": (b'{"hidden_size": 1', "must hold JSON"),
    "list": (b"[1]", "must hold a JSON object"),
    "string": (b'"os.system"', "must hold a JSON object"),
    "key twice": (b'{"vocab_size": 5, "vocab_size": 6}', "'vocab_size' more than once"),
    "key twice inside": (b'{"a": [{"b": 5, "b": 6}]}', "'b' more than once"),
    "100,000 lists deep": (b'{"a":' + b"[" * DEEP + b"]" * DEEP + b"}", DEEPER),
    "100,000 objects deep": (b'{"a":' * DEEP + b"1" + b"}" * DEEP, DEEPER),
    "100,000 levels, open": (b'{"a":' * DEEP, "nesting of"),
    "40 levels": (b'{"a":' * 40 + b"1" + b"}" * 40, "nesting of 40"),
    "a million lists": (b'{"a":[' + b"[]," * 10**6 + b"1]}", "more than a preset's"),
    "two million numbers": (b'{"a":[' + b"1," * (2 * 10**6) + b"1]}", "more than a"),
    "open string": (b'{"a": "' + b'\\"' * 10**6, "must hold JSON"),
    "quotation marks": (b'{"' * 10**6, "must hold JSON"),
    "NaN": (b'{"hidden_size": NaN}', "NaN, no finite"),
    "infinity": (b'{"hidden_size": Infinity}', "Infinity, no finite"),
    "minus infinity": (b'{"hidden_size": [-Infinity]}', "-Infinity, no finite"),
    "1e999": (b'{"hidden_size": 1e999}', "1e999, no finite"),
    "10,000 digits": (b'{"a": ' + b"9" * 10_000 + b"}", "must hold JSON"),
    "not UTF-8": (b'{"a": "\xff"}', "must hold JSON"),
    "UTF-16": ('{"a": 1}'.encode("utf-16"), "must hold JSON"),
    "lone surrogate": (b'{"a": "\\ud800"}', "must hold JSON"),
    "zero bytes": (bytes(100), "must hold JSON"),
}
FORMS = {
    f"{name}: {form}": Case(content(name, data), told, readers)
    for name, readers in READERS.items()
    for form, (data, told) in JSON.items()
} | {
    f"{name}: 200 MB": Case(sparse(name, 2 * 10**8, b"{"), "at most 16777216", readers)
    for name, readers in READERS.items()
}
for _name in [name for name in FORMS if name.startswith(INDEX)]:
    FORMS[_name] = Case(
        each(without("model.safetensors"), FORMS[_name].damage), FORMS[_name].told, "BC"
    )

SIZES = {  # the key in config.json: what is below every limit, but not in the file
    "vocab_size": 10**7,
    "num_hidden_layers": 200,
    "num_attention_heads": 3,
    "hidden_size": 60_000,
    "intermediate_size": 250_000,
    "max_position_embeddings": 10**6,
    "type_vocab_size": 60_000,
}
CONFIGS = {
    f"{key}: {value!r}"[:60]: Case(values(CONFIG, **{key: value}), told, "BC")
    for key, large in SIZES.items()
    for value, told in [
        (10**12, "at most .* Received: 1000000000000"),
        (10**4000, "at most .* Received: 1000"),
        (0, "Received: 0"),
        (-1, "Received: -1"),
        (2.5, "Received: 2.5"),
        ("16", "Received: '16'"),
        (True, "Received: True"),
        ([16], r"Received: \[16\]"),
        (CODE, "Received: {'module"),
        (large, "must have the shape|must have a tensor for|must be a multiple"),
    ]
}
CONFIGS |= {
    f"config {i}: {key} = {str(value)[:40]}": Case(
        values(CONFIG, **{key: value}), told, "BC"
    )
    for i, (key, value, told) in enumerate(
        [
            ("num_hidden_layers", 10**9, "at most 256. Received: 1000000000"),
            ("hidden_dropout_prob", -1, "rate .* Received: -1"),
            ("hidden_dropout_prob", "x", "rate .* Received: 'x'"),
            ("attention_probs_dropout_prob", CODE, "rate .* Received"),
            ("classifier_dropout", 2, "rate .* Received: 2"),
            ("layer_norm_eps", 0, "between 0 and 1. Received: 0"),
            ("layer_norm_eps", [1], "between 0 and 1. Received"),
            ("initializer_range", "x", "between 0 and 1. Received"),
            ("pad_token_id", 10**12, "pad_token_id=1000000000000"),
            ("pad_token_id", -1, "pad_token_id=-1"),
            ("hidden_act", "os.system", "hidden_act='os.system'"),
            ("hidden_act", CODE, "hidden_act={'module'"),
            ("hidden_act", "x" * 10**6, "hidden_act='xxx"),
            ("model_type", CODE, "model_type={'module'"),
            ("model_type", "x" * 10**6, "model_type='xxx"),
            ("quantization_config", CODE, "quantization_config="),
            ("pruned_heads", {"0": [0]}, "pruned_heads="),
            ("embedding_size", 10**12, "embedding_size=1000000000000"),
            ("architectures", 5, "architectures.*Received: 5"),
            ("architectures", [CODE], "architectures.*Received"),
            ("architectures", CODE, "architectures.*Received"),
            ("problem_type", ["x"], "problem_type.*Received"),
            ("id2label", ["a", "b"], "id2label.*Received"),
            ("id2label", {"0": CODE, "1": "b"}, "id2label.0.*Received"),
            ("id2label", {"0": "a", "2": "b"}, "id2label the distinct"),
            ("id2label", {"zero": "a", "one": "b"}, "id2label the distinct"),
            ("id2label", {"0": "a", "1": "a"}, "id2label the distinct"),
            ("id2label", {"0": "a", "1": ""}, "id2label the distinct"),
            ("id2label", {"0": "a" * 10**6, "1": "b"}, "at most 1000 characters"),
            ("id2label", {str(i): f"L{i}" for i in range(20_000)}, "at most 10000"),
            ("id2label", {str(i): f"L{i}" for i in range(100_000)}, "at most 65536"),
        ]
    )
}
CONFIGS |= {
    "config: 100,000 keys": Case(
        values(CONFIG, **{f"key_{i}": i for i in range(100_000)}), "at most 65536", "BC"
    ),
    "config: 50,000 keys": Case(
        values(CONFIG, **{f"key_{i}": i for i in range(50_000)}), refused_by=""
    ),
    "config: of nothing": Case(
        content(CONFIG, b"{}"), "must have the shape|every", "BC"
    ),
    "config: names of code": Case(
        values(
            CONFIG,
            **CODE,
            registered_name="kbert>Evil",
            build_config=CODE,
            compile_config=CODE,
            auto_map={"AutoModel": "modeling_x.X", "AutoConfig": "evil/repo--x.Y"},
            custom_pipelines={"x": {"impl": "x.X", "pt": ["AutoModel"]}},
            _attn_implementation="someone/kernel",
            torch_dtype="os.system",
            tokenizer_class="os.system",
            transformers_version=CODE,
            trust_remote_code=True,
        ),
        refused_by="",
    ),
}

HASHED = {
    "preprocessing of code": (dict(preprocessing=CODE), "preprocessing.module"),
    "dtype of code": (dict(preprocessing={"dtype": CODE}), "preprocessing.dtype"),
    "tokenizer of code": (
        dict(preprocessing={"tokenizer": CODE}),
        "preprocessing.tokenizer",
    ),
    "name": (dict(preprocessing={"name": "x"}), "preprocessing.name"),
    "length of 10**12": (
        dict(preprocessing={"sequence_length": 10**12}),
        "sequence_length.*Received: 1000000000000",
    ),
    "length below 0": (
        dict(preprocessing={"max_sequence_length": -5}),
        "max_sequence_length.*Received: -5",
    ),
    "length in words": (
        dict(preprocessing={"sequence_length": "9"}),
        "sequence_length.*Received: '9'",
    ),
    "long text": (dict(preprocessing={"long_text": "x"}), "long_text.*Received: 'x'"),
    "long text of code": (dict(preprocessing={"long_text": CODE}), "long_text.*Rec"),
    "preprocessing as a list": (dict(preprocessing=[1]), "preprocessing.*Received"),
    "files as a list": (dict(files=["config.json"]), "files.*Received"),
    "files of numbers": (dict(files={"config.json": 5}), "files.config.json.*Rec"),
    "files of code": (dict(files={"config.json": CODE}), "files.config.json.*Rec"),
}
METADATA = {f"signed: {k}": Case(signed(**m), told) for k, (m, told) in HASHED.items()}
METADATA |= {
    "signed: harmless names of code": Case(
        signed(task=CODE, vocabulary="../x", sources=[CODE], **CODE), refused_by=""
    ),
    "signed: lengths that contradict": Case(
        signed(preprocessing={"sequence_length": 10, "max_sequence_length": 5}),
        "sequence_length=10, max_sequence_length=5",
        "C",
    ),
    "signed: length beyond the positions": Case(
        signed(preprocessing={"max_sequence_length": 1000}), "1000 tokens for 32", "C"
    ),
    "signed: another hash": Case(
        signed(files={"config.json": "0" * 64}), "config.json is not the file", "BCT"
    ),
    "unsigned": Case(content("kbert.json", b'{"files": {}}'), "must be None"),
    "signed with code": Case(
        each(signed(), values("kbert.json", sha256=CODE)), "must be {'module"
    ),
}

FAST_ALONE = without("vocab.txt", SETTINGS)
VOCAB = {"[PAD]": 0, "[UNK]": 1, "[CLS]": 2, "[SEP]": 3, "[MASK]": 4}
ADD = {"id": 99, "content": "x", "special": True}
TOKENS = {
    f"{SETTINGS} {i}: {key} = {str(value)[:40]}": Case(
        values(SETTINGS, **{key: value}), told, "CT"
    )
    for i, (key, value, told) in enumerate(
        [
            ("do_lower_case", "yes", "do_lower_case.*Received: 'yes'"),
            ("strip_accents", 5, "strip_accents.*Received: 5"),
            ("tokenize_chinese_chars", [], "tokenize_chinese_chars.*Received"),
            ("split_special_tokens", "no", "split_special_tokens.*Received: 'no'"),
            ("cls_token", 5, "cls_token.*Received: 5"),
            ("cls_token", CODE, r"cls_token the keys \['content'\]"),
            ("cls_token", "x" * 10**6, "cls_token.*at most 1000"),
            ("cls_token", "absent", "cls='absent'"),
            ("additional_special_tokens", "abc", "additional_special_tokens.*Received"),
            ("additional_special_tokens", [5], r"tokens\[0\].*Received: 5"),
            ("additional_special_tokens", ["x"] * 100_000, "at most 65536"),
            (
                "extra_special_tokens",
                {"x": None},
                "extra_special_tokens.x.*Received: None",
            ),
            ("added_tokens_decoder", [ADD], "added_tokens_decoder.*Received"),
            ("added_tokens_decoder", {"x": ADD}, "keys of added_tokens_decoder.*'x'"),
            ("added_tokens_decoder", {"-1": ADD}, "keys of added_tokens_decoder.*'-1'"),
            ("added_tokens_decoder", {"9" * 5000: ADD}, "keys of added_tokens_decoder"),
            ("added_tokens_decoder", {"99999999": ADD}, "must have the id 99999999"),
            ("added_tokens_decoder", {"0": {}}, r"the keys \['content'\]"),
            ("added_tokens_decoder", {"0": 5}, "added_tokens_decoder.0.*Received: 5"),
        ]
    )
}
TOKENS |= {
    f"{FAST} {i}: {key} = {str(value)[:40]}": Case(
        each(FAST_ALONE, values(FAST, **{key: value})), told, "CT"
    )
    for i, (key, value, told) in enumerate(
        [
            ("model__vocab", {**VOCAB, "x": 10**12}, "id of a piece.*1000000000000"),
            ("model__vocab", {**VOCAB, "x": -1}, "id of a piece.*Received: -1"),
            ("model__vocab", {**VOCAB, "x": "5"}, "id of a piece.*Received: 5"),
            ("model__vocab", {**VOCAB, "x": 5.5}, "id of a piece.*Received: 5.5"),
            ("model__vocab", {**VOCAB, "x": True}, "id of a piece.*Received: True"),
            ("model__vocab", {**VOCAB, "x": None}, "id of a piece.*Received: None"),
            ("model__vocab", {**VOCAB, "x": 4}, "with id 4"),
            ("model__vocab", {**VOCAB, "x" * 10**6: 5}, "at most 1000 characters"),
            ("model__vocab", [["x", 0]], "model.vocab.*list"),
            ("model__vocab", {}, "model.vocab"),
            ("model__unk_token", CODE, "model.unk_token.*Received"),
            ("model__max_input_chars_per_word", "x", "per_word.*Received: 'x'"),
            ("model__max_input_chars_per_word", 10**12, "per_word.*Received: 10000"),
            ("model", "x", "model.*Received: 'x'"),
            ("model", [], "model.*Received"),
            ("model", CODE, "model.type='WordPiece'.*Received: None"),
            ("normalizer", [], "normalizer.*Received"),
            ("normalizer__lowercase", "x", "normalizer.lowercase.*Received: 'x'"),
            ("pre_tokenizer", "x", "pre_tokenizer.*Received: 'x'"),
            ("added_tokens", 5, "added_tokens.*Received: 5"),
            ("added_tokens", [{}], r"added_tokens\[0\] the keys"),
            ("added_tokens", [{**ADD, "id": 10**12}], "id .*Received: 1000000000000"),
            ("added_tokens", [{**ADD, "id": "0"}], "id .*Received: '0'"),
            ("added_tokens", [{**ADD, "content": CODE}], "content .*Received"),
            ("added_tokens", [{**ADD, "special": "x"}], "special .*Received: 'x'"),
            ("post_processor", [], "post_processor.*Received"),
            ("post_processor", {"cls": 5}, "post_processor.cls.*Received: 5"),
            ("post_processor", {"cls": [CODE]}, r"post_processor.cls\[0\].*Received"),
            ("post_processor", {"cls": [5]}, "cls=5"),
            ("post_processor", {"single": [5]}, r"single\[0\].*Received: 5"),
            ("post_processor", {"single": [{"SpecialToken": {}}]}, r"keys \['id'\]"),
        ]
    )
}
TOKENS |= {
    "tokenizer.json: beginning of a sequence is empty": Case(
        each(FAST_ALONE, values(FAST, post_processor={"cls": [], "single": []})),
        refused_by="",
    ),
    "added_tokens.json: id of 10**12": Case(
        values(ADDED, x=10**12), "x an integer.*Received: 1000000000000", "CT"
    ),
    "added_tokens.json: id in words": Case(
        values(ADDED, x="5"), "x an integer.*Received: '5'", "CT"
    ),
    "tokenizer: names of code": Case(
        values(
            SETTINGS,
            **CODE,
            auto_map={"AutoTokenizer": ["tokenization_x.X", None]},
            tokenizer_class="os.system",
            tokenizer_file="/etc/passwd",
            vocab_file="/etc/passwd",
            chat_template="{{ ''.__class__.__mro__ }}",
        ),
        refused_by="",
    ),
}
SPECIALS = b"[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\n"
WITHOUT_FAST = without(FAST)
VOCABULARIES = {
    "vocabulary: a line of 200 MB": Case(
        sparse("vocab.txt", 2 * 10**8, SPECIALS), "at most 16777216 bytes", "CT"
    ),
    **{
        f"vocabulary: {name}": Case(
            each(WITHOUT_FAST, content("vocab.txt", data)), told, "CT"
        )
        for name, data, told in [
            (
                "a line of 10 MB",
                lambda: SPECIALS + b"x" * 10**7,
                "at most 1000",
            ),
            (
                "1,500,000 lines",
                lambda: SPECIALS + b"x\n" * 1_500_000,
                "at most 1048576 piec",
            ),
            (
                "10,000,000 blank lines",
                lambda: SPECIALS + b"\n" * 10**7,
                "at most 1048576",
            ),
            ("not UTF-8", SPECIALS + b"\xff\n", "must be UTF-8"),
            ("UTF-16", SPECIALS.decode().encode("utf-16"), "must be UTF-8"),
            ("empty", b"", "without a single piece"),
            ("blank", b"\n\n \n", "without a single piece"),
            ("zero bytes", bytes(1000), "must hold every special token"),
            ("without special tokens", b"a\nb\n", "must hold every special token"),
        ]
    },
    "vocabulary: larger than the embedding": Case(
        each(
            WITHOUT_FAST,
            appended("vocab.txt", b"more\n" * 5 + b"most\n"),
        ),
        "must not be larger",
        "C",
    ),
    "vocabulary: without tokenizer_config.json": Case(
        each(without(SETTINGS), drop_keys(FAST, "decoder", "truncation")), refused_by=""
    ),
}
