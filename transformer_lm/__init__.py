"""Attention, written to be read: the library of the course.

`modeling_attention` is the course in code, top to bottom. `test_values` holds fixed weights and
results to test an implementation with. `pretrained`, `activations`, `weights`, `ablation` and
`plots` look inside a trained GPT-2.

Conventions, kept everywhere:

* `batch_size, seq_len, hidden, num_heads, head_size` name the sizes; a comment at the end of a
  line says the shape of the tensor that it makes.
* A mask is True where a key is **hidden** from a query, as `masked_fill` takes it. (PyTorch's
  `scaled_dot_product_attention` has it the other way round: True takes part.)
* Token i sees the tokens 0 to i: the current one too.
"""
