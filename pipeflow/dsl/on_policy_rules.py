"""Rules for plans that claim to be on-policy: learners train only on what was made with their latest weights.

That holds behind a barrier, `gather_rounds` or `gather_sync`, when everything of a round is learnt from in one
update and the weights are sent before the next round is asked for (laws 5, 6 and 9). What is looked for is
whatever lets a round start earlier, or end with other weights than it began with. An update that is given an
unknown number of items, by `concat` or `flat_map` for instance, cannot be shown to keep to rounds and is reported
as well.
"""

from __future__ import annotations

from collections.abc import Iterator

from pipeflow.dsl import nodes
from pipeflow.dsl.findings import Finding, Rule
from pipeflow.dsl.gating import EveryNth
from pipeflow.dsl.message_rules import Sender, receivers_of
from pipeflow.dsl.nodes import Group, Node, producers_of
from pipeflow.dsl.structure_rules import gate_state
from pipeflow.dsl.trees import shard_count, walk

ASYNCHRONOUS = Rule("PF301", "error", "an asynchronous gather")
WITHIN_A_ROUND = Rule("PF302", "error", "weights that may change within a round")
AHEAD = Rule("PF303", "error", "a round that may start before the update of the last one has ended")
NOT_EVERY_UPDATE = Rule("PF304", "error", "weights that are not sent after every update")
NO_BARRIER = Rule("PF305", "error", "weights that are sent from outside of the barrier")
OTHER_DATA = Rule("PF306", "error", "a learner that trains on what others made")


def on_policy_findings(root: Node) -> Iterator[Finding]:
    """What keeps a plan from being exactly on-policy."""
    senders = [node for node in walk(root) if isinstance(node, Sender)]
    for sender in senders:
        for receiver in receivers_of(sender):
            for gather in walk(root):
                if isinstance(gather, nodes.Gather) and receiver in producers_of(gather.input):
                    yield from _held(gather, sender, root)
    for learner in dict.fromkeys(sender.learner for sender in senders):
        receivers = {group for node in senders if node.learner is learner for group in receivers_of(node)}
        yield from _other_data(learner, receivers, root)


def _held(gather: nodes.Gather, sender: Sender, root: Node) -> Iterator[Finding]:
    """Whether the gather keeps its shards back until the weights were sent."""
    if gather.mode == "async":
        message = (
            f"{gather.name} delivers items that were begun before the weights of {sender.name} "
            f"({sender.site}) were sent; gather in rounds, with gather_rounds()"
        )
        yield ASYNCHRONOUS.broken(gather.site, message)
        return
    if gather not in walk(sender):
        message = (
            f"{sender.name} is not behind {gather.name} ({gather.site}), so a round may be under way when "
            "the weights change; put it behind the update that learns from the round"
        )
        yield NO_BARRIER.broken(sender.site, message)
        return
    between = [
        node for node in walk(sender) if node is not gather and node is not sender and gather in walk(node)
    ]
    yield from _ahead(between, sender, root)
    yield from _amid(gather, sender, between)
    yield from _apart(gather, sender, between)


def _ahead(between: list[Node], sender: Sender, root: Node) -> Iterator[Finding]:
    for node in between:
        if isinstance(node, nodes.Place) and node.max_in_flight > 1:
            message = (
                f"{node.name} holds up to {node.max_in_flight} items, so the next round starts before "
                f"{sender.name} ({sender.site}) has sent the weights; delete "
                f".max_in_flight({node.max_in_flight})"
            )
            yield AHEAD.broken(node.site, message)
        elif isinstance(node, nodes.Buffer):
            message = (
                f"{node.name} reads the next round before {sender.name} ({sender.site}) has sent the weights; "
                "delete it"
            )
            yield AHEAD.broken(node.site, message)
        elif isinstance(node, nodes.Share) and (union := _free_union(node, root)) is not None:
            message = (
                f"{node.name} has readers that do not wait for one another in {union.name} ({union.site}), "
                f"so one may ask for the next round before {sender.name} ({sender.site}) has sent the "
                "weights; join them with .round_robin()"
            )
            yield AHEAD.broken(node.site, message)


def _amid(gather: nodes.Gather, sender: Sender, between: list[Node]) -> Iterator[Finding]:
    """Whether weights follow items that are no part of the round, and that a union lets through within it."""
    whole = gather.mode == "rounds" or shard_count(gather.input) == 1
    for node in between:
        if isinstance(node, nodes.Union) and not (node.policy == "round_robin" and whole):
            for branch in node.branches:
                if gather not in walk(branch) and not branch.drained:
                    message = (
                        f"{node.name} lets items of {branch.name} ({branch.site}) through while a round of "
                        f"{gather.name} ({gather.site}) is under way, and {sender.name} ({sender.site}) sends "
                        f"weights after each; put {sender.name} into the branch of {gather.name}"
                    )
                    yield WITHIN_A_ROUND.broken(node.site, message)


def _free_union(share: nodes.Share, root: Node) -> nodes.Union | None:
    """The union in which readers of a fork or partition are served as they come, if there is one."""
    for node in walk(root):
        if isinstance(node, nodes.Union) and node.policy != "round_robin":
            readers = [branch for branch in node.branches if share in walk(branch)]
            if len(readers) > 1:
                return node
    return None


def _apart(gather: nodes.Gather, sender: Sender, between: list[Node]) -> Iterator[Finding]:
    """Whether each update has whole rounds, and is followed by its weights."""
    updates = [node for node in between if isinstance(node, nodes.Place) and node.group is sender.learner]
    last = updates[-1] if updates else sender
    shards = 1 if gather.mode == "rounds" else shard_count(gather.input)
    joined = 1
    for node in between:
        if node not in walk(last):
            continue
        match node:
            case nodes.Batch(size=size):
                joined *= size
            case nodes.Concat() if shards > 1:
                message = (
                    f"{node.name} may end an update within a round of {gather.name} ({gather.site}), whose "
                    "other items are then of older weights; write gather_rounds() and a function of the list "
                    "in place of both"
                )
                yield WITHIN_A_ROUND.broken(node.site, message)
                return
            case nodes.Concat():
                pass
            case nodes.Expand():
                message = (
                    f"{node.name} may spread a round of {gather.name} ({gather.site}) over several updates, "
                    f"and after the first of them the rest is of older weights; do it inside of {last.name}"
                )
                yield WITHIN_A_ROUND.broken(node.site, message)
                return
            case nodes.Gate() if (state := gate_state(node)) is not None and state[0] is EveryNth:
                (n,) = state[1]
                joined *= n if isinstance(n, int) else 1
            case _:
                pass
    if joined % shards:
        message = (
            f"{gather.name} gives {shards} items in a round and {last.name} ({last.site}) follows after "
            f"every {_counted(joined)}, so the rest of the round is of older weights; write gather_rounds()"
        )
        yield WITHIN_A_ROUND.broken(gather.site, message)
    if sender.every > 1 and updates:
        message = (
            f"{sender.name} sends the weights after every {sender.every} updates, so the rounds in between "
            "are of older ones; delete every"
        )
        yield NOT_EVERY_UPDATE.broken(sender.site, message)


def _counted(items: int) -> str:
    return "single one" if items == 1 else f"{items}"


def _other_data(learner: Group, receivers: set[Group], root: Node) -> Iterator[Finding]:
    """Whether a learner trains on items of actors that its weights are not sent to, such as a replay buffer."""
    for update in walk(root):
        if not (isinstance(update, nodes.Place) and update.group is learner):
            continue
        for source in walk(update):
            if (
                isinstance(source, nodes.Produce)
                and source.group not in receivers
                and source.group is not learner
            ):
                message = (
                    f"{update.name} learns from {source.name} ({source.site}), whose actors do not get the "
                    f"weights of {learner.name}; that is off-policy: check the plan without --on-policy, "
                    "or learn from fresh rounds alone"
                )
                yield OTHER_DATA.broken(update.site, message)
