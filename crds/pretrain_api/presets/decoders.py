"""Presets of models with causal language modelling."""

from __future__ import annotations

from pretrain_api.presets.preset import Preset

GPT2 = Preset(
    name="gpt2",
    architecture="gpt2",
    source=(
        "the causal language modelling example of transformers (examples/flax/"
        "language-modeling), GPT-2 on the Norwegian part of OSCAR"
    ),
    expectation="loss 3.24 and perplexity 25.72 after 20 epochs",
    layer={
        "tokenizer": {
            "train": {
                "algorithm": "byteLevelBpe",
                "vocabSize": 50_257,
                "minFrequency": 2,
                "lowercase": False,
            }
        },
        "objective": {"clm": {}},
        "preprocess": {"sequenceLength": 512},
        "model": {
            "architecture": "gpt2",
            "config": {
                "n_embd": 768,
                "n_layer": 12,
                "n_head": 12,
                "n_positions": 1024,
                "resid_pdrop": 0.0,
                "embd_pdrop": 0.0,
                "attn_pdrop": 0.0,
            },
        },
        "training": {
            "globalBatchSize": 512,
            "epochs": 20,
            "optimizer": {
                "name": "adamw",
                "learningRate": 5e-3,
                "betas": [0.9, 0.98],
                "epsilon": 1e-8,
                "weightDecay": 0.01,
            },
            "schedule": {"type": "linear", "warmupSteps": 1000},
        },
    },
)

QWEN2_5_05B = Preset(
    name="qwen2.5-0.5b",
    architecture="qwen2",
    source=(
        "the pretraining configuration of PaddleNLP for Qwen2.5-0.5B (rates of continued "
        "pretraining) and the model's own configuration (Qwen Team 2024, arXiv:2412.15115; sizes)"
    ),
    layer={
        "tokenizer": {
            "train": {"algorithm": "byteLevelBpe", "vocabSize": 151_665, "lowercase": False}
        },
        "objective": {"clm": {}},
        "preprocess": {"sequenceLength": 1024},
        "model": {
            "architecture": "qwen2",
            "config": {
                "hidden_size": 896,
                "num_hidden_layers": 24,
                "num_attention_heads": 14,
                "num_key_value_heads": 2,
                "intermediate_size": 4864,
                "max_position_embeddings": 32_768,
                "rope_theta": 1_000_000.0,
                "tie_word_embeddings": True,
            },
        },
        "training": {
            "maxSteps": 10_000,
            "optimizer": {"name": "adamw", "learningRate": 3e-5, "weightDecay": 0.01},
            "schedule": {"type": "cosine", "warmupSteps": 30, "minimumRatio": 0.1},
        },
    },
)
