"""How the peers of fine-tunings train: optimiser, rate, clipping and patience as engraft's ledger has them. A setting that is not done here is refused by name, so that no
row stands beside one that was trained otherwise."""

import math

import torch

# What peers read, and what is of no account for what they train (what other kinds of sets and rows are made of, and states).
READ = {"batch", "clip_norm", "dropout", "epochs", "learning_rate", "max_tokens", "pooling", "schedule", "seed", "subwords", "warmup", "patience.evaluations", "checkpoint_every"}
READ_BELOW = ("adamw.", "optimiser.", "max_examples.", "ranking.", "spans.")
# What is done in one way alone.
ONLY = {"accumulate": 1, "class_weights": "none", "frozen": [], "patience.evals_per_epoch": 1, "truncation": "longest"}


def refuse_what_is_not_done_here(fields, stage):
    """Fields of a fine-tuning that peers neither read nor have as they are."""
    for key, value in fields.items():
        if not key.startswith("finetune."):
            continue
        key = key[len("finetune.") :]
        known = key in READ or key.startswith(READ_BELOW)
        assert known or ONLY.get(key) == value, f"{stage}: finetune.{key} = {value!r} is not done here"


class Uncorrected(torch.optim.Optimizer):
    """Adamax of mt-dnn and BertAdam of pytorch-pretrained-BERT: moments as they are, decay inside the update."""

    def __init__(self, groups, lr, kind, betas, eps):
        super().__init__(groups, {"lr": lr, "kind": kind, "betas": betas, "eps": eps})

    @torch.no_grad()
    def step(self):
        for group in self.param_groups:
            (one, two), eps = group["betas"], group["eps"]
            for p in group["params"]:
                if p.grad is None:
                    continue
                state = self.state[p]
                if not state:
                    state["m"], state["v"] = torch.zeros_like(p), torch.zeros_like(p)
                state["m"].lerp_(p.grad, 1 - one)
                if group["kind"] == "adamax":
                    torch.maximum(state["v"] * two, p.grad.abs() + eps, out=state["v"])
                    under = state["v"] + eps
                else:
                    state["v"].mul_(two).addcmul_(p.grad, p.grad, value=1 - two)
                    under = state["v"].sqrt() + eps
                p.sub_(group["lr"] * (state["m"] / under + group["weight_decay"] * p))


class Training:
    """The optimiser of a model's parameters and its rate over so many steps."""

    def __init__(self, model, fields, settings, steps):
        self.parameters, self.most = list(model.parameters()), fields["finetune.clip_norm"]
        plain = lambda name: name.endswith("bias") or "LayerNorm" in name
        named, kind = dict(model.named_parameters()), fields.get("finetune.optimiser.kind")
        key = "finetune.optimiser" if kind else "finetune.adamw"
        decays = {False: fields[f"{key}.weight_decay"], True: 0.0}
        groups = [{"params": [p for name, p in named.items() if plain(name) is of], "weight_decay": decay} for of, decay in decays.items()]
        constants = {"lr": settings["learning_rate"], "betas": (fields[f"{key}.beta1"], fields[f"{key}.beta2"]), "eps": fields[f"{key}.epsilon"]}
        if kind:
            assert kind in ("adamax", "bert_adam") and f"{key}.clip_norm" not in fields, f"{key}: {kind} with these settings is not done here"
            self.optimiser = Uncorrected(groups, kind=kind, **constants)
        else:
            self.optimiser = torch.optim.AdamW(groups, fused=True, **constants)
        warm = math.floor(settings["warmup"] * steps)
        left = lambda step: (steps - step) / max(1, steps + 1 - warm)
        share = {"linear": left, "constant": lambda _: 1.0, "cosine": lambda step: 0.5 - 0.5 * math.cos(math.pi * left(step))}[fields["finetune.schedule"]]
        self.rate = torch.optim.lr_scheduler.LambdaLR(self.optimiser, lambda step: (step + 1) / warm if step < warm else share(step))

    def step(self, loss):
        loss.backward()
        torch.nn.utils.clip_grad_norm_(self.parameters, self.most)
        self.optimiser.step()
        self.rate.step()
        self.optimiser.zero_grad()


class Best:
    """The scores of `dev` so far, and the model that had the best."""

    def __init__(self, fields):
        self.patience, self.score, self.kept, self.worse = fields.get("finetune.patience.evaluations", math.inf), -math.inf, None, 0

    def is_enough(self, score, model):
        """Whether so many scores in turn were no better that training ends."""
        if score > self.score:
            self.score, self.worse = score, 0
            self.kept = {name: of.clone() for name, of in model.state_dict().items()}
            return False
        self.worse += 1
        return self.worse == self.patience
