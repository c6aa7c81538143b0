"""Attention, written to be read: the library of the course.

To build: `modeling_attention` is the course in code, top to bottom, and `test_values` holds fixed
weights and results to test an implementation with. `modeling_lm` puts a language model around the
attention, `training` trains it, `sampling` lets it write.

To look inside a trained GPT-2: `pretrained` loads one. `hooks` reads and writes what flows through
it, by name; `activations` reads heads and residual stream. `ablation` cuts heads out, `attribution`
takes logits apart, `patching` finds out who tells whom, `head_scores` what a head looks at.
`weights` reads what was learned, `circuits` what follows from it, and `plots` draws.

Conventions, kept everywhere:

* `batch_size, seq_len, hidden, num_heads, head_size` name the sizes; a comment at the end of a
  line says the shape of the tensor that it makes.
* A mask is True where a key is **hidden** from a query, as `masked_fill` takes it. (PyTorch's
  `scaled_dot_product_attention` has it the other way round: True takes part.)
* Token i sees the tokens 0 to i: the current one too.
"""
