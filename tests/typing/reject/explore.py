from __future__ import annotations
from typing import reveal_type
from pipeflow import *
from tests.typing.domain import *

workers = actors(RolloutWorker, 2, 7)
learner = actors(PPOLearner, 1, 3e-4)
dqn = actors(DQNLearner, 1, 3e-4)
replay = actors(Replay, 1, 100)
rollouts = workers.produce(RolloutWorker.sample)
stream = rollouts | gather_sync()

a1 = rollouts | gather_sync() | learner.stage(PPOLearner.update)
a2 = (
    rollouts
    | gather_sync()
    | concat(10)
    | learner.stage(PPOLearner.update)
    | sync_weights(learner, workers)
)
a3 = stream | standardise
a4 = stream | loss_of
b1 = stream | PPOLearner
reveal_type(b1)
b2 = stream | PPOLearner | learner.stage(PPOLearner.update)
def b3() -> Stream[Report]:
    return stream | PPOLearner
b4 = stream | Advantages
reveal_type(b4)
b5 = stream | int
reveal_type(b5)
b6 = stream | list
reveal_type(b6)
c1 = rollouts | gather_sync
c2 = stream | batch
c3 = stream | gae
c4 = stream | gae | learner.stage(PPOLearner.update)
c5 = rollouts | gae
reveal_type(c1)
reveal_type(c2)
reveal_type(c3)
d1 = rollouts | gae() | learner.stage(PPOLearner.update)
d2 = rollouts | gae() | workers.stage(RolloutWorker.gradients)
reveal_type(d2)
e1 = workers.produce(Replay.sample)
e2 = workers.stage(PPOLearner.update)
e3 = workers.send(Replay.update_priorities)
f1 = actors(RolloutWorker, 2)
f2 = actors(RolloutWorker, 2, "seven")
f3 = actors(RolloutWorker, 2, 7, step=3)
f4 = actors(RolloutWorker, 2, 7, steps="3")
f5 = actors(RolloutWorker, 7, 7, 7)
for item in rollouts: pass
for item in stream: pass
g1 = rollouts | gather_sync() | gather_sync()
g2 = stream | gather_async(2).with_source()
g3 = stream | gather_rounds()
h1 = rollouts | gather_sync() & rollouts | gather_sync()
h2 = rollouts & stream
h3 = stream & rollouts
h4 = stream & loss_of
i1 = (stream & (stream | transitions)) | learner.stage(PPOLearner.update)
i2 = (stream & (stream | transitions)) | gae()
j1 = stream.map(lambda t: t.nope)
j2 = stream | (lambda t: t.nope)
j3 = stream.filter(lambda t: t.nope > 1)
j4 = stream.tap(lambda t: print(t.nope))
j5 = stream.until(lambda t: t.nope)
k1 = stream | sync_weights(workers, learner)
k2 = stream | sync_weights(replay, workers)
k3 = stream | sync_weights(learner, replay)
l1 = rollouts | gather_async().with_source() 
l2 = (l1 | gae() )
l3 = l1.map(lambda s: s.item) 
l4 = l1.reply(PPOLearner.update, lambda t: 3)
l5 = l1.reply(RolloutWorker.set_weights, lambda t: 3)
l6 = l1.reply(RolloutWorker.set_weights, lambda t: t.weights)
l7 = stream.reply(RolloutWorker.set_weights, lambda t: Weights(1))
m1 = rollouts | drain
m2 = rollouts | tap(print)
m3 = rollouts | until(long_enough)
m4 = rollouts | learner.send(PPOLearner.update)
m5 = rollouts | sync_weights(learner, workers)
n1 = stream | flatten()
n2 = stream | loss_of | flatten()
n3 = stream | count | concat(100)
o1 = 0 if stream else 1
o2 = stream and stream
if rollouts: pass
if not stream: pass
p1 = gae() | gae()
p2 = gae() | standardise | loss_of
p3 = gae() | learner.stage(PPOLearner.update)
p4 = batch(3) | count
p5 = gae() | gather_sync()
q1, q2 = stream.fork(3, buffer=1)
q3, q4, q5 = stream.fork(2, buffer=1)
q6, q7 = stream.fork(2)
r1 = stream | gae() | expand(NStep)
r2 = stream | count | flat_map(range)
r3 = stream | flat_map(range)
r4 = stream | tap(loss_of)
r5 = stream | until(loss_of)
r6 = stream | tap(is_report)
s1 = stream | 3
s2 = 3 | stream
s3 = stream | "gae"
s4 = stream | None
s5 = stream.partition(is_report, buffer=1)
s6 = stream.filter(is_report)
s7 = stream | filter
t1 = stream.round_robin(1, 2)
t2 = (stream & stream).round_robin(1.5, 2)
t3 = stream.run("local")
u1 = stream | drain | gae() | loss_of
reveal_type(u1)
v1 = gather_async("2")
v2 = stream | learner.stage
v3 = stream | learner
v4 = stream | workers.produce(RolloutWorker.sample)
v5 = stream | stream
v6 = rollouts | stream
v7 = learner.stage(PPOLearner.update)(Advantages(3))
v8 = learner.stage(PPOLearner.weights)
v9 = learner.stage(learner.update)
w1 = workers.produce(RolloutWorker)
w2 = from_items(3)
w3 = from_shards([1, 2])
w4 = expand(gae)
w5 = stage(3)
w6 = stage(loss_of)(Trajectories(3))
x1 = stream | learner.stage(PPOLearner.update).max_in_flight()
x2 = stream.drain()
x3 = len(stream)
x4 = stream[0]
x5 = 3 in stream
x6 = next(stream)
x7 = stream + stream
async def acoro(t: Trajectories) -> int: return 3
x8 = stream | acoro | loss_of
x9 = stream | gae().named("x") | loss_of
y1 = rollouts.tap(print)
y2 = rollouts.run()
y3 = rollouts.fork(2, buffer=3)
y4 = stream.map(loss_of)
y5 = stream | gather_sync | loss_of
y6 = group_of(stream, RolloutWorker())
y7 = stream.run().ask(learner, RolloutWorker.sample)
