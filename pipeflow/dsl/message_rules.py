"""Rules about weights: who sends them and when, who gets them, and what counts them."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator

from pipeflow.dsl import nodes
from pipeflow.dsl.findings import Finding, Rule
from pipeflow.dsl.nodes import Group, Node, producers_of
from pipeflow.dsl.trees import groups_of, walk

VARIANTS = Rule("PF201", "error", "weights between two variants of the same actors")
UNUSED_RECEIVER = Rule("PF202", "warning", "a message to actors that no stage uses")
UNTRAINED_SENDER = Rule("PF203", "warning", "weights of a learner that no stage trains")
NEVER_UPDATED = Rule("PF204", "warning", "workers that never get the weights of their learner")
UNCOUNTED_LAG = Rule("PF205", "error", "a limit of lag where no weights are sent")
SENT_TOO_SOON = Rule("PF206", "warning", "weights that are sent before the update")

Sender = nodes.SyncWeights | nodes.ReplyWeights


def receivers_of(node: Node) -> tuple[Group, ...]:
    """The groups that a node sends weights to."""
    match node:
        case nodes.SyncWeights(workers=workers):
            return (workers,)
        case nodes.ReplyWeights():
            return producers_of(node.input)
        case _:
            return ()


def message_findings(root: Node) -> Iterator[Finding]:
    """What is wrong with the messages of a plan."""
    for node in walk(root):
        match node:
            case nodes.SyncWeights(learner=learner, workers=workers):
                yield from _unused_receiver(node, workers, root)
                yield from _untrained_sender(node, learner, root)
                yield from _sent_too_soon(node, root)
            case nodes.ReplyWeights(learner=learner):
                yield from _untrained_sender(node, learner, root)
                yield from _sent_too_soon(node, root)
            case nodes.Notify(group=group):
                yield from _unused_receiver(node, group, root)
            case nodes.Produce():
                yield from _never_updated(node, root)
            case nodes.MaxLag():
                yield from _uncounted_lag(node, root)
            case _:
                pass


def _unused_receiver(node: Node, receiver: Group, root: Node) -> Iterator[Finding]:
    if _is_used(receiver, root):
        return
    if other := _used_variant(receiver, root):
        yield _variants(node, receiver, other)
        return
    message = (
        f"{node.name} is for {receiver.name} ({receiver.site}), which no stage of the plan uses; name the "
        "actors that produce or learn"
    )
    yield UNUSED_RECEIVER.broken(node.site, message)


def _untrained_sender(node: Node, learner: Group, root: Node) -> Iterator[Finding]:
    if _is_used(learner, root):
        return
    if other := _used_variant(learner, root):
        yield _variants(node, learner, other)
        return
    message = (
        f"{node.name} sends the weights of {learner.name} ({learner.site}), which no stage of the plan "
        "trains, so they never change; name the learner whose stage is in the plan"
    )
    yield UNTRAINED_SENDER.broken(node.site, message)


def _variants(node: Node, named: Group, used: Group) -> Finding:
    message = (
        f"{node.name} is for other actors than the stages use: {named.name} and {used.name} are two "
        f"variants of the actors of {named.site}, started apart; keep the one with its .restarts, .named "
        "or .resources in a variable, and use that alone"
    )
    return VARIANTS.broken(node.site, message)


def _never_updated(source: nodes.Produce, root: Node) -> Iterator[Finding]:
    group = source.group
    if not _has(group, "set_weights") or _gets_messages(group, root):
        return
    if any(_gets_messages(other, root) for other in _variants_of(group, root)):
        return  # the finding at the sender says so
    for node, stores in _stages_of_the_items(source, root):
        learner = node.group
        if not node.parallel and learner is not group and _has(learner, "weights"):
            by_way = f" by way of {', '.join(store.name for store in stores)}" if stores else ""
            message = (
                f"{group.name} ({group.site}) never gets the weights of {learner.name}, which learns from "
                f"its items{by_way}, and acts with its first ones for ever; add | sync_weights(learner, "
                f"workers) behind {node.name}"
            )
            yield NEVER_UPDATED.broken(source.site, message)
            return


def _stages_of_the_items(
    source: nodes.Produce, root: Node
) -> Iterator[tuple[nodes.Place | nodes.Send | nodes.Scatter, tuple[Group, ...]]]:
    """The stages in actors that a source's items come to, nearest first, each with the stores on the way there.

    What actors are given and what they produce are separate streams, as of a replay buffer: the second is taken
    to be made of the first.
    """
    found: deque[tuple[nodes.Produce, tuple[Group, ...]]] = deque([(source, ())])
    seen = {source.group}
    while found:
        origin, stores = found.popleft()
        for node in walk(root):
            if isinstance(node, nodes.Place | nodes.Send | nodes.Scatter) and _reaches(origin, node):
                yield node, stores
                if node.group not in seen:
                    seen.add(node.group)
                    found.extend(
                        (other, (*stores, node.group))
                        for other in walk(root)
                        if isinstance(other, nodes.Produce) and other.group is node.group
                    )


def _reaches(origin: Node, node: Node) -> bool:
    """Whether items of the one come to the other, as against a branch that is drained on the way."""
    return origin in walk(node, through_drains=False)


def _uncounted_lag(node: nodes.MaxLag, root: Node) -> Iterator[Finding]:
    shards = node.input.inputs[0]  # it stands right behind a gather
    groups = producers_of(shards)
    if any(group in groups for sender in walk(root) for group in receivers_of(sender)):
        return
    names = ", ".join(f"{group.name} ({group.site})" for group in groups)
    message = (
        f"{node.name} limits nothing: it counts the weights that {names} was sent, and the plan sends "
        "none; add | sync_weights(learner, workers), or delete it"
    )
    yield UNCOUNTED_LAG.broken(node.site, message)


def _sent_too_soon(sender: Sender, root: Node) -> Iterator[Finding]:
    update = _update_behind(sender, root)
    if update is None:
        return
    others = [node for node in walk(root) if isinstance(node, Sender) and node.learner is sender.learner]
    for group in dict.fromkeys(receivers_of(sender)):
        # Who gets them again behind the update has the newest, whatever was sent before.
        if all(_update_behind(other, root) for other in others if group in receivers_of(other)):
            message = (
                f"{sender.name} sends the weights before {update.name} ({update.site}) trains on the item, so "
                f"after every update {group.name} goes on with weights that are one update old; put it "
                "behind that stage"
            )
            yield SENT_TOO_SOON.broken(sender.site, message)


def _update_behind(sender: Sender, root: Node) -> Node | None:
    """The learner's last stage behind the sender, None where another stage of the learner stands elsewhere.

    Which of its stages trains is not known: one that is not behind the sender may be the one.
    """
    stages = _stages_in(sender.learner, root)
    return stages[-1] if stages and all(_reaches(sender, stage) for stage in stages) else None


def _stages_in(group: Group, root: Node) -> list[Node]:
    """The stages that run in the actors, as against messages that nothing is done with."""
    return [
        node
        for node in walk(root)
        if isinstance(node, nodes.Produce | nodes.Place | nodes.Scatter | nodes.Send) and node.group is group
    ]


def _is_used(group: Group, root: Node) -> bool:
    return bool(_stages_in(group, root))


def _gets_messages(group: Group, root: Node) -> bool:
    """Whether anything comes to the actors from outside of their shards."""
    for node in walk(root):
        if group in receivers_of(node):
            return True
        if isinstance(node, nodes.Send | nodes.Notify | nodes.Scatter) and node.group is group:
            return True
        if isinstance(node, nodes.Place) and node.group is group and not node.parallel:
            return True
        if isinstance(node, nodes.Reply) and group in producers_of(node.input):
            return True
    return False


def _variants_of(group: Group, root: Node) -> Iterator[Group]:
    """Other actors of the plan that were derived from the same call, which have the very same keywords."""
    return (other for other in groups_of(root) if other is not group and other.kwargs is group.kwargs)


def _used_variant(group: Group, root: Node) -> Group | None:
    return next((other for other in _variants_of(group, root) if _is_used(other, root)), None)


def _has(group: Group, method: str) -> bool:
    return callable(getattr(group.factory, method, None))
