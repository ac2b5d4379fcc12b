/** The promises of the port of the replica about worklists: see `replica-port.ts`. */
import { expect, test } from 'vitest'
import { isNodeId, type GroupId } from '../../src/base/ids.ts'
import type { ListedGroup } from '../../src/group/replica-port.ts'
import { worklistPrefix } from '../../src/group/worklist-key.ts'
import { newGroup, newName } from './footings.ts'
import type { ReplicaStory } from './replica-story.ts'
import { bytesOf, type Committed } from './submissions.ts'

/** A topic of its own, and rows under it. */
class Topic {
  readonly name: string = newName('topic')
  readonly #one: ReplicaStory

  constructor(one: ReplicaStory) {
    this.#one = one
  }

  #key(name: string): Uint8Array {
    return Buffer.concat([worklistPrefix(this.name), bytesOf(name)])
  }

  put(group: GroupId, name: string, isNew = true): Promise<Committed> {
    const row = { key: this.#key(name), value: bytesOf('due') }
    const mutations = [isNew ? { ...row, isNew } : row]
    return this.#one.commit([], { group, mutations })
  }

  take(group: GroupId, name: string): Promise<Committed> {
    return this.#one.commit([], { group, mutations: [{ key: this.#key(name) }] })
  }

  list(after?: GroupId, limit = 10): Promise<readonly ListedGroup[]> {
    const { footing, replica } = this.#one
    return footing.settled(replica.worklist.list(this.name, after, limit))
  }
}

export function describeWorklists(story: () => ReplicaStory): void {
  test('QUE-5: a group with a row under a topic is listed under it, until its worker found none', async () => {
    const one = story()
    const { worklist } = one.replica
    const topic = new Topic(one)
    const [a, b, c] = [newGroup('a'), newGroup('b'), newGroup('c')]
    expect(await topic.list()).toEqual([])
    for (const group of [c, a, b]) await topic.put(group, 'first')
    await topic.put(b, 'second')
    const all = [
      ...[{ group: a, position: 1 }],
      ...[
        { group: b, position: 2 },
        { group: c, position: 1 },
      ],
    ]
    expect(await topic.list()).toEqual(all)
    expect(await topic.list(a, 1)).toEqual(all.slice(1, 2))
    expect(await topic.list(c)).toEqual([])
    const { position } = await topic.take(a, 'first')
    worklist.unlist(topic.name, a, position)
    // Of a time before its newest row.
    worklist.unlist(topic.name, b, 1)
    expect(await topic.list()).toEqual(all.slice(1))
    await topic.put(a, 'third')
    expect(await topic.list()).toEqual([{ group: a, position: 3 }, ...all.slice(1)])
    expect(await one.footing.settled(worklist.topics(1_000))).toContain(topic.name)
  })

  test('QUE-5: a watcher of a topic hears of each row that is put there, and of no other one', async () => {
    const one = story()
    const { worklist } = one.replica
    const [topic, another] = [new Topic(one), new Topic(one)]
    const heard: ListedGroup[] = []
    const wake = (listed: ListedGroup): void => void heard.push(listed)
    const [first, second] = [worklist.watch(topic.name, wake), worklist.watch(topic.name, wake)]
    const { group } = one
    await one.commit(['a=1'])
    await another.put(group, 'row')
    await topic.put(group, 'row')
    await one.until(() => heard.length >= 2)
    expect(heard).toEqual([
      { group, position: 3 },
      { group, position: 3 },
    ])
    first()
    await topic.put(group, 'row', false)
    await one.until(() => heard.length >= 3)
    expect(heard.slice(2)).toEqual([{ group, position: 4 }])
    second()
    await topic.take(group, 'row')
    const last: ListedGroup[] = []
    worklist.watch(topic.name, (listed) => void last.push(listed))
    await topic.put(group, 'row')
    await one.until(() => last.length > 0)
    expect(last).toEqual([{ group, position: 6 }])
    expect(heard).toHaveLength(3)
  })

  test('rows of a topic are counted as they come and go', async () => {
    const one = story()
    const topic = new Topic(one)
    const { worklist } = one.replica
    const { group } = one
    await topic.put(group, 'a')
    await topic.put(group, 'b')
    await topic.put(group, 'b', false)
    await topic.take(group, 'a')
    expect(worklist.counts()[topic.name]).toEqual({ put: 2, gone: 1 })
  })

  test('of the nodes that hold a group exactly one serves it, where all are alive', async () => {
    const one = story()
    const { group } = one
    await one.commit(['a=1'])
    const { nodes } = one.footing
    const holders = nodes.filter(({ replica }) => replica.holds(group))
    const serving = holders.filter(({ replica }) => replica.worklist.isOurs(group))
    expect(serving).toHaveLength(1)
    // The leader that one names is another node, which names none.
    const leaders = holders.map(({ replica }) => replica.leaderElsewhere(group))
    expect(leaders.every((leader) => leader === undefined || isNodeId(leader))).toBe(true)
    expect(leaders.filter((leader) => leader === undefined).length).toBeGreaterThan(0)
  })
}
