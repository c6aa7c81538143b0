"""Uses the library's own class, should it be there.

expect: 0
"""

from transformer_lm.modeling_attention import MultiHeadSelfAttention as MultiHeadSelfAttention
from transformer_lm.modeling_attention import SelfAttention as SelfAttention
