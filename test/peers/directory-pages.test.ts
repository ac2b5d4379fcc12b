/** The directory of a node's groups, as a peer gets it page by page. */
import { expect, test } from 'vitest'
import { compareText } from '../../src/base/bytes.ts'
import { nodeId, type GroupId } from '../../src/base/ids.ts'
import { DirectoryPages } from '../../src/peers/directory-pages.ts'
import type { Directory } from '../../src/replication/message.ts'
import { group } from '../log/log-fixture.ts'
import { whole } from '../log/whole.ts'

const peer = nodeId('n2')
const names = ['a', 'b', 'c', 'd', 'e'].map(group)
const [a, b, c, d, e] = names

/** Groups `stored` have state records, groups `held` stand in the log's memory. */
function makePages(
  stored: GroupId[],
  held: GroupId[],
): {
  readonly log: { durableFlush: number }
  readonly sent: Directory[]
  /** The answer that the peer gets. */
  ask(after?: GroupId, through?: number): Promise<Directory | undefined>
} {
  const sent: Directory[] = []
  const log = {
    durableFlush: 7,
    heldGroups: () => held,
    // The last one has promises alone.
    highest: (name: GroupId) => (name === e ? 0 : names.indexOf(name) + 1),
  }
  const pages = new DirectoryPages({
    ...{ limits: { digestGroupsMax: 2 }, log },
    groups: (after, limit, known) => {
      const all = [...new Set([...stored, ...known])].sort(compareText)
      return Promise.resolve(
        all.filter((name) => after === undefined || name > after).slice(0, limit),
      )
    },
    later: (_, { pieces }) => whole(pieces),
    send: (_, message) => void sent.push(message),
    onFailed: (error) => expect.unreachable(String(error)),
  })
  const ask = async (after?: GroupId, through = 0): Promise<Directory | undefined> => {
    const behind = after === undefined ? {} : { after }
    pages.ask(peer, { kind: 'directory-request', asked: 1, through, ...behind })
    await new Promise((resolve) => setImmediate(resolve))
    return sent.at(-1)
  }
  return { log, sent, ask }
}

test('all pages name each group once, of the data store or of the log alone, through one flush', async () => {
  const { log, ask } = makePages(
    [a, c, d].flatMap((one) => one ?? []),
    [b, c, e].flatMap((one) => one ?? []),
  )
  const first = await ask()
  expect(first).toMatchObject({
    through: 7,
    next: b,
    groups: [
      [a, 1],
      [b, 2],
    ],
  })
  log.durableFlush = 9
  const second = await ask(first?.next, first?.through)
  expect(second).toMatchObject({
    through: 7,
    after: b,
    next: d,
    groups: [
      [c, 3],
      [d, 4],
    ],
  })
  const third = await ask(second?.next, second?.through)
  expect(third).toMatchObject({ through: 7, after: d, groups: [] })
  expect(third?.next).toBeUndefined()
})

test('of questions that come meanwhile only the last one is answered', async () => {
  const { sent, ask } = makePages([...names], [])
  await Promise.all([ask(), ask(a, 7), ask(c, 7)])
  expect(sent.map(({ after }) => after)).toEqual([undefined, c])
})
