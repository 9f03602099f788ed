"""The architectures: transformers' own defaults (release 5.24), objective and tokenizer of each.

The defaults are those of the configuration classes, but for RoBERTa: its class has the 512
position rows of BERT, of which two are never used, and its published models have 514 and one
token type (Liu et al. 2019, arXiv:1907.11692); a spec that says nothing gets these.
"""

from __future__ import annotations

from collections.abc import Mapping

from pretrain_api.presets.architecture import Architecture
from pretrain_api.spec.model import ConfigValue

_BERT_CONFIG: dict[str, ConfigValue] = {
    "hidden_size": 768,
    "num_hidden_layers": 12,
    "num_attention_heads": 12,
    "intermediate_size": 3072,
    "hidden_act": "gelu",
    "hidden_dropout_prob": 0.1,
    "attention_probs_dropout_prob": 0.1,
    "max_position_embeddings": 512,
    "type_vocab_size": 2,
    "initializer_range": 0.02,
    "layer_norm_eps": 1e-12,
    "pad_token_id": 0,
    "tie_word_embeddings": True,
}

BERT = Architecture(
    name="bert",
    objective="mlm",
    config=_BERT_CONFIG,
    layer={"tokenizer": {"train": {"algorithm": "wordpiece", "lowercase": True}}},
)

ROBERTA = Architecture(
    name="roberta",
    objective="mlm",
    config={**_BERT_CONFIG, "pad_token_id": 1},
    layer={
        "tokenizer": {"train": {"algorithm": "byteLevelBpe", "lowercase": False}},
        "model": {"config": {"max_position_embeddings": 514, "type_vocab_size": 1}},
    },
    padded_positions=True,
)

MODERNBERT = Architecture(
    name="modernbert",
    objective="mlm",
    config={
        "hidden_size": 768,
        "num_hidden_layers": 22,
        "num_attention_heads": 12,
        "intermediate_size": 1152,
        "hidden_activation": "gelu",
        "max_position_embeddings": 8192,
        "initializer_range": 0.02,
        "initializer_cutoff_factor": 2.0,
        "norm_eps": 1e-5,
        "norm_bias": False,
        "attention_bias": False,
        "attention_dropout": 0.0,
        "global_attn_every_n_layers": 3,
        "local_attention": 128,
        "embedding_dropout": 0.0,
        "mlp_bias": False,
        "mlp_dropout": 0.0,
        "decoder_bias": True,
        "classifier_pooling": "cls",
        "classifier_dropout": 0.0,
        "pad_token_id": 50283,
        "tie_word_embeddings": True,
    },
    layer={"tokenizer": {"train": {"algorithm": "wordpiece", "lowercase": True}}},
    rotary=True,
)

GPT2 = Architecture(
    name="gpt2",
    objective="clm",
    config={
        "n_positions": 1024,
        "n_embd": 768,
        "n_layer": 12,
        "n_head": 12,
        "n_inner": 3072,
        "activation_function": "gelu_new",
        "resid_pdrop": 0.1,
        "embd_pdrop": 0.1,
        "attn_pdrop": 0.1,
        "layer_norm_epsilon": 1e-5,
        "initializer_range": 0.02,
        "scale_attn_weights": True,
        "scale_attn_by_inverse_layer_idx": False,
        "reorder_and_upcast_attn": False,
        "tie_word_embeddings": True,
    },
    layer={"tokenizer": {"train": {"algorithm": "byteLevelBpe", "lowercase": False}}},
    positions="n_positions",
    hidden="n_embd",
    heads="n_head",
)

QWEN2 = Architecture(
    name="qwen2",
    objective="clm",
    config={
        "hidden_size": 4096,
        "num_hidden_layers": 32,
        "num_attention_heads": 32,
        "num_key_value_heads": 32,
        "intermediate_size": 22016,
        "hidden_act": "silu",
        "max_position_embeddings": 32768,
        "initializer_range": 0.02,
        "rms_norm_eps": 1e-6,
        "rope_theta": 10000.0,
        "use_sliding_window": False,
        "sliding_window": 4096,
        "max_window_layers": 28,
        "attention_dropout": 0.0,
        "tie_word_embeddings": False,
    },
    layer={"tokenizer": {"train": {"algorithm": "byteLevelBpe", "lowercase": False}}},
    key_value_heads="num_key_value_heads",
    rotary=True,
)

DEBERTA_V2 = Architecture(
    name="deberta-v2",
    objective="mlm",
    config={
        **_BERT_CONFIG,
        "hidden_size": 1536,
        "num_hidden_layers": 24,
        "num_attention_heads": 24,
        "intermediate_size": 6144,
        "type_vocab_size": 0,
        "layer_norm_eps": 1e-7,
        "relative_attention": False,
        "max_relative_positions": -1,
        "position_buckets": -1,
        "position_biased_input": True,
        "pos_att_type": "",
        "norm_rel_ebd": "none",
        "share_att_key": False,
    },
    layer={"tokenizer": {"train": {"algorithm": "unigram", "lowercase": False}}},
    isolates=False,
    half_range=False,
    runs=False,
)

T5 = Architecture(
    name="t5",
    objective="spanCorruption",
    config={
        "d_model": 512,
        "d_kv": 64,
        "d_ff": 2048,
        "num_layers": 6,
        "num_decoder_layers": 6,
        "num_heads": 8,
        "relative_attention_num_buckets": 32,
        "relative_attention_max_distance": 128,
        "dropout_rate": 0.1,
        "layer_norm_epsilon": 1e-6,
        "initializer_factor": 1.0,
        "feed_forward_proj": "relu",
        "tie_word_embeddings": True,
    },
    layer={"tokenizer": {"train": {"algorithm": "unigram", "lowercase": False}}},
    positions=None,
    hidden="d_model",
    heads="num_heads",
    half_range=False,
    runs=False,
)

BART = Architecture(
    name="bart",
    objective="denoising",
    config={
        "d_model": 1024,
        "encoder_layers": 12,
        "decoder_layers": 12,
        "encoder_attention_heads": 16,
        "decoder_attention_heads": 16,
        "encoder_ffn_dim": 4096,
        "decoder_ffn_dim": 4096,
        "max_position_embeddings": 1024,
        "activation_function": "gelu",
        "dropout": 0.1,
        "attention_dropout": 0.0,
        "activation_dropout": 0.0,
        "init_std": 0.02,
        "scale_embedding": False,
        "tie_word_embeddings": True,
    },
    layer={"tokenizer": {"train": {"algorithm": "byteLevelBpe", "lowercase": False}}},
    hidden="d_model",
    heads="encoder_attention_heads",
    isolates=False,
    runs=False,
)

ARCHITECTURES: Mapping[str, Architecture] = {
    architecture.name: architecture
    for architecture in (BERT, ROBERTA, MODERNBERT, GPT2, QWEN2, DEBERTA_V2, T5, BART)
}
"""By transformers' name of the model type."""
