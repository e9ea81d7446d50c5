"""A real, small tokenizer: byte-level BPE like GPT's and Llama's, trained in the test."""

from collections.abc import Iterable

from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

SPECIAL = ("<|begin|>", "<|end|>", "<|pad|>")


def train_tokenizer(texts: Iterable[str], size: int = 2_000, special: tuple[str, ...] = SPECIAL) -> Tokenizer:
    """A tokenizer of so many tokens, learned from the texts; it can encode anything."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=size,
        special_tokens=list(special),
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator(texts, trainer)
    return tokenizer
