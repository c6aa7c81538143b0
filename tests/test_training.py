"""transformer_lm.training: the batches, the schedule, the loop, and runs that can be repeated."""

import math
from dataclasses import replace

import pytest
import torch
from torch import nn

from transformer_lm import training
from transformer_lm.modeling_lm import LanguageModel
from transformer_lm.training import Settings

VOCAB = 7
CYCLE = torch.arange(400) % VOCAB  # after each token comes always the same one
SETTINGS = Settings(
    steps=8, batch_size=4, seq_len=6, warm_up_steps=3, evaluate_every=4, learning_rate=1e-2
)


def small(seed=0, dropout=0.2):
    torch.manual_seed(seed)
    return LanguageModel(VOCAB, 8, 12, 1, 2, dropout=dropout)


def trained(model=None, ids=CYCLE, held_out=CYCLE[:100], settings=SETTINGS, **more):
    model = model or small()
    return model, training.train(model, ids, held_out, settings, progress=False, **more)


def same(one, two):
    return all(torch.equal(a, b) for a, b in zip(one.parameters(), two.parameters(), strict=True))


# --- Batches --------------------------------------------------------------------------------------


def test_a_target_is_the_token_after_its_input():
    ids = torch.arange(50) * 10
    inputs, targets = training.draw_batch(ids, 20, 6, torch.Generator().manual_seed(0))
    assert inputs.shape == targets.shape == (20, 6)
    assert torch.equal(targets, inputs + 10)
    assert torch.equal(inputs[:, 1:], inputs[:, :-1] + 10)


def test_rows_begin_everywhere_and_end_within_the_text():
    ids = torch.arange(9)
    generator = torch.Generator().manual_seed(0)
    inputs, targets = training.draw_batch(ids, 200, 6, generator)
    assert set(inputs[:, 0].tolist()) == {0, 1, 2} and targets.max() == 8


def test_a_text_that_is_too_short_is_refused():
    generator = torch.Generator()
    training.draw_batch(torch.arange(7), 1, 6, generator)
    with pytest.raises(ValueError, match="the text has 6 tokens, but a row needs 7"):
        training.draw_batch(torch.arange(6), 1, 6, generator)
    with pytest.raises(ValueError, match="the text has 6 tokens, but one row needs 7"):
        training.evaluate(small(), torch.arange(6), seq_len=6)


# --- The pieces -----------------------------------------------------------------------------------


def test_the_learning_rate_rises_in_a_line_and_falls_as_a_cosine():
    settings = Settings(steps=101, warm_up_steps=20, learning_rate=1.0, final_share=0.1)
    rates = [training.learning_rate_at(step, settings) for step in range(101)]
    assert rates[:20] == pytest.approx([(i + 1) / 20 for i in range(20)])
    assert rates[20] == pytest.approx(1.0) and rates[60] == pytest.approx(0.55)
    assert rates[100] == pytest.approx(0.1)
    assert all(a > b for a, b in zip(rates[20:], rates[21:], strict=False))
    assert rates[40] == pytest.approx(0.1 + 0.9 * (1 + math.cos(math.pi / 4)) / 2)


@pytest.mark.parametrize("steps", [1, 3, 4])
def test_the_learning_rate_is_a_number_however_short_the_run(steps):
    settings = Settings(steps=steps, warm_up_steps=3)
    rates = [training.learning_rate_at(step, settings) for step in range(steps)]
    assert all(0 < rate <= settings.learning_rate for rate in rates)


def test_matrices_decay_and_norms_and_biases_do_not():
    model = small()
    names = {p: name for name, p in model.named_parameters()}
    decayed, kept = training.make_optimizer(model, Settings(weight_decay=0.3)).param_groups
    assert decayed["weight_decay"] == 0.3 and kept["weight_decay"] == 0
    assert {p.dim() for p in decayed["params"]} == {2} and {p.dim() for p in kept["params"]} == {1}
    assert len(names) == len(decayed["params"]) + len(kept["params"])


def test_a_long_gradient_is_cut_and_its_length_is_told():
    layer = nn.Linear(2, 3, bias=False)
    nn.init.zeros_(layer.weight)

    class Flat(nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = layer

        def forward(self, ids):
            return self.layer(torch.full((*ids.shape, 2), 50.0))

    ids = torch.zeros(1, 4, dtype=torch.long)
    optimizer = torch.optim.SGD(layer.parameters(), lr=99.0)
    before = layer.weight.detach().clone()
    loss, norm = training.take_step(Flat(), optimizer, ids, ids, learning_rate=1.0, max_norm=0.25)
    moved = (layer.weight - before).norm().item()
    assert norm > 1 and moved == pytest.approx(0.25, rel=1e-4) and loss > 0
    loss, norm = training.take_step(Flat(), optimizer, ids, ids, learning_rate=1.0, max_norm=1e9)
    assert norm == pytest.approx(layer.weight.grad.norm().item())


def test_evaluation_predicts_each_token_once_whatever_the_batch():
    model = small()
    held_out = torch.randint(VOCAB, (103,), generator=torch.Generator().manual_seed(0))
    model.eval()
    losses = []
    for first in range(0, 102, 6):
        logits = model(held_out[None, first : first + 6])[0]
        losses.append(nn.functional.cross_entropy(logits, held_out[first + 1 : first + 7]))
    expected = torch.stack(losses).mean().item()
    for batch_size in (1, 5, 17, 40):
        found = training.evaluate(model, held_out, 6, batch_size)
        assert found == pytest.approx(expected, abs=1e-6)
    first_two = torch.stack(losses[:2]).mean().item()
    assert training.evaluate(model, held_out, 6, 5, rows=2) == pytest.approx(first_two, abs=1e-6)


def test_evaluation_switches_dropout_off_and_back_on():
    model = small(dropout=0.5).train()
    assert training.evaluate(model, CYCLE, 6) == training.evaluate(model, CYCLE, 6)
    assert model.training
    assert training.evaluate(model.eval(), CYCLE, 6) > 0 and not model.training


# --- The loop -------------------------------------------------------------------------------------


def test_a_cycle_is_learnt():
    settings = Settings(
        steps=60, batch_size=8, seq_len=6, warm_up_steps=5, evaluate_every=30, learning_rate=3e-2
    )
    _, history = trained(small(dropout=0), settings=settings)
    assert history.held_out_losses[0] == pytest.approx(math.log(VOCAB), abs=0.1)
    assert history.held_out_losses[-1] < 0.2
    assert history.evaluated_at == [0, 30, 60]


def test_the_history_has_an_entry_for_each_step():
    _, history = trained()
    assert len(history.losses) == len(history.learning_rates) == len(history.gradient_norms) == 8
    assert history.learning_rates == [training.learning_rate_at(i, SETTINGS) for i in range(8)]
    assert history.evaluated_at == [0, 4, 8] and len(history.held_out_losses) == 3


def test_the_last_step_is_evaluated_where_it_falls_between_two():
    _, history = trained(settings=replace(SETTINGS, steps=6))
    assert history.evaluated_at == [0, 4, 6]


def test_two_runs_are_equal_and_another_seed_is_not():
    torch.manual_seed(1)
    one, first = trained()
    torch.manual_seed(2)
    two, second = trained()
    assert first == second and same(one, two)
    other, third = trained(settings=replace(SETTINGS, seed=1))
    assert third.losses != first.losses and not same(one, other)


def test_the_callers_random_numbers_are_not_touched():
    model = small()
    torch.manual_seed(5)
    expected = torch.rand(3)
    torch.manual_seed(5)
    trained(model)
    assert torch.equal(torch.rand(3), expected)


def test_a_run_taken_up_again_is_the_run_that_was_not_stopped(tmp_path):
    whole, history = trained(folder=tmp_path, checkpoint_steps=[0, 4, 5])
    for step in (0, 4, 5):
        again, second = trained(small(seed=9), resume=training.checkpoint_path(tmp_path, step))
        assert second == history and same(again, whole)


def test_checkpoints_hold_the_model_at_their_steps(tmp_path):
    model, _ = trained(folder=tmp_path / "runs", checkpoint_steps=[0, 3])
    names = sorted(path.name for path in (tmp_path / "runs").iterdir())
    assert names == ["step_000000.pt", "step_000003.pt", "step_000008.pt"]
    read = small(seed=9)
    history, step = training.load_checkpoint(tmp_path / "runs" / names[0], read)
    assert step == 0 and history.losses == [] and same(read, small())
    training.load_checkpoint(tmp_path / "runs" / names[2], read)
    assert same(read, model)


def test_a_checkpoint_of_other_settings_is_refused(tmp_path):
    trained(folder=tmp_path)
    words = "was made with learning_rate=0.01, but the settings now have 0.5"
    with pytest.raises(ValueError, match=words):
        trained(
            settings=replace(SETTINGS, learning_rate=0.5),
            resume=training.checkpoint_path(tmp_path, 8),
        )


def test_who_watches_is_called_after_each_evaluation():
    seen = []
    trained(watch=lambda history: seen.append((len(history.losses), history.evaluated_at[-1])))
    assert seen == [(0, 0), (4, 4), (8, 8)]


def test_a_loss_that_is_no_number_stops_the_run():
    class Broken(nn.Module):
        def __init__(self):
            super().__init__()
            self.weight = nn.Parameter(torch.zeros(VOCAB))

        def forward(self, ids):
            logits = self.weight.expand(*ids.shape, VOCAB)
            return logits * torch.nan if self.training else logits

    with pytest.raises(RuntimeError, match="the loss of step 0 is nan; try a smaller"):
        trained(Broken())


def test_a_model_in_evaluation_mode_is_put_into_training_mode():
    model, _ = trained(small().eval())
    assert model.training


def test_the_progress_bar_shows_both_losses(capfd):
    training.train(small(), CYCLE, CYCLE[:100], SETTINGS)
    shown = capfd.readouterr().err
    assert "loss=" in shown and "held out=" in shown
