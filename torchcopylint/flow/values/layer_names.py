"""Names of the layers of a network of which nothing else is known."""

from __future__ import annotations

import re
from functools import lru_cache

from torchcopylint.flow.values import kinds

_SUBSCRIPTS = re.compile(r"\[[^\[\]]*\]")
_LAYERS = re.compile(
    r"^(?:layers?|blocks|stages|features|modules|children|resblocks|convs|linears|encoders|decoders|cells|towers|experts)\d*$"
)
"""Fields that are called like a number of layers: of parameters one would say so."""
_LAYER = re.compile(
    r"(?:^|_)(?:head|embed_tokens|patch_embed|word_embeddings?|position_embeddings?|token_type_embeddings|pooler|linear|norm"
    r"|layernorm|(?:conv|layer|block|stage)\d*)$"
)
"""Fields of models that are layers, beside those that `kinds.named_layer` knows. A `pos_embed` may be a parameter."""
_ONE = re.compile(r"^(?:layer|block|blk|module|child|submodule)$")


@lru_cache(maxsize=4096)
def is_layer(text: str, taken: str) -> bool:
    """Whether something is a layer of a network: by how it is written (`model.lm_head`, `layer`), and by what it was
    taken out of (`model.bert.encoder.layer[:6][...]`)."""
    for one in (text, taken):
        path = _SUBSCRIPTS.sub("", one)
        root, _, last = path.rpartition(".")
        if not path.replace(".", "").isidentifier() or not root:
            continue
        if one.endswith("]") and _LAYERS.match(last) and (one is text or _ONE.match(text) or _is_model(root)):
            return True
        if _is_model(root) and bool(_LAYER.search(last) or kinds.named_layer(last)):
            return True
    return False


def _is_model(path: str) -> bool:
    """Whether a name, or one on the way to a field, is that of a model: `model`, `self.backbone.encoder`."""
    return any(kinds.named_model(name) or kinds.named_layer(name) for name in path.split("."))
