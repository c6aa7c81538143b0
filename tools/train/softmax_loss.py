"""Cross-entropy through a large softmax, with half the memory traffic of automatic gradients."""

import torch


class SoftmaxLoss(torch.autograd.Function):
    """Mean cross-entropy, nats, of ``softmax(hidden @ embedding.T)`` against ``ids``.

    hidden [num_kept, hidden], embedding [vocab, hidden], ids [num_kept]. The gradients are known
    as soon as the probabilities are (probability minus one-hot, over num_kept), so they are
    formed in the forward pass, in the memory of the logits.
    """

    @staticmethod
    def forward(ctx, hidden, embedding, ids):
        """The loss, a scalar."""
        logits = hidden @ embedding.T  # [num_kept, vocab]
        logits -= logits.amax(1, keepdim=True)  # [num_kept, vocab]
        right = logits.gather(1, ids[:, None])  # [num_kept, 1]
        probs = logits.exp_()  # [num_kept, vocab]
        total = probs.sum(1, keepdim=True)  # [num_kept, 1]
        loss = (total.log() - right).mean()
        probs /= total * len(ids)  # [num_kept, vocab]
        probs[torch.arange(len(ids)), ids] -= 1 / len(ids)
        ctx.save_for_backward(probs @ embedding, probs.T @ hidden)
        return loss

    @staticmethod
    def backward(ctx, upstream):
        """Gradients [num_kept, hidden] and [vocab, hidden]; none for the ids."""
        hidden_gradient, embedding_gradient = ctx.saved_tensors
        return upstream * hidden_gradient, upstream * embedding_gradient, None
