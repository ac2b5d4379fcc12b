/** Planted bugs in global indexes: in what writers put on worklists, and in the relay. */
import type { Edit, Mutant } from './mutant.ts'

/** Every seed has programs that go by the schema of before for long. */
export const withLaterIndex: readonly Edit[] = [
  {
    file: 'sim/swarm.ts',
    find: 'tableSessionCount: random.pick([0, 2, 3, 4]),',
    replace: 'tableSessionCount: random.pick([4, 4, 4, 4]),',
  },
  {
    file: 'sim/swarm.ts',
    find: 'schemaChanges: random.pick([0, 1, 1]),',
    replace: 'schemaChanges: random.pick([1, 1, 1]),',
  },
  {
    file: 'sim/swarm.ts',
    find: 'hasGlobalIndexes: random.chance(500_000),',
    replace: 'hasGlobalIndexes: random.chance(1_000_000),',
  },
  {
    file: 'sim/swarm.ts',
    find: 'schemaTrustMs: random.pick([100, 1_000, 10_000, 30_000]),',
    replace: 'schemaTrustMs: random.pick([30_000, 30_000, 30_000, 30_000]),',
  },
]

export const indexMutants: readonly Mutant[] = [
  {
    id: 'G12',
    title: 'a changed row leaves its old entry in a global index',
    edits: [
      {
        file: 'src/tables/global-writes.ts',
        find: 'if (before === undefined || now.has(key) || !fitsIndex(index, entry)) continue',
        replace: 'if (before === undefined || now.size > 0 || !fitsIndex(index, entry)) continue',
      },
    ],
  },
  {
    id: 'I01',
    title: 'a relay reads the changes before it fixes its place in the index',
    edits: [
      {
        file: 'src/tables/index-batcher.ts',
        find:
          '      const seen = await groups.view(this.#target, from, relayBounds.callMs, atLeast)\n' +
          '      const changes = withinBytes(await this.#read(batch))\n',
        replace:
          '      const changes = withinBytes(await this.#read(batch))\n' +
          "      const seen = await groups.view(this.#target, { kind: 'current' }, relayBounds.callMs, atLeast)\n",
      },
    ],
  },
  {
    id: 'I02',
    title: 'a change is taken off its worklist though another one has replaced it',
    edits: [
      {
        file: 'src/tables/index-relay.ts',
        find: 'if (rows[place]?.timestamp === madeAt) transaction.delete(worklistKey)',
        replace: 'if (madeAt > 0 && rows[place] !== undefined) transaction.delete(worklistKey)',
      },
    ],
  },
  {
    id: 'I03',
    title: 'an element that a list has no more keeps its entry',
    edits: [
      {
        file: 'src/tables/global-writes.ts',
        find: 'if (before === undefined || now.has(key) || !fitsIndex(index, entry)) continue',
        replace:
          'const isElement = index.list !== undefined && now.size > 0\n' +
          '    if (before === undefined || now.has(key) || !fitsIndex(index, entry) || isElement) continue',
      },
    ],
  },
  {
    id: 'I04',
    title: 'an index is said to be built before its groups are gone through to the end',
    edits: [
      {
        file: 'src/tables/index-backfill.ts',
        find: '    rest = value.next && { gte: value.next, lt: rowRange.lt }\n',
        replace: '    rest = undefined\n',
      },
    ],
  },
  {
    id: 'I05',
    title: 'changes are read from what the node happens to have, and asked of nobody',
    edits: [
      {
        file: 'src/tables/index-batcher.ts',
        find: "await this.#parts.replica.read(source, 'current', relayBounds.sourceMs)",
        replace: "await this.#parts.replica.read(source, 'snapshot', relayBounds.sourceMs)",
      },
    ],
  },
  {
    id: 'I06',
    title: 'what goes to an index is not validated against what was written there since',
    edits: [
      {
        file: 'src/tables/index-batcher.ts',
        find: 'reads: changes.map(({ state }) => state.key),',
        replace: 'reads: [],',
      },
    ],
  },
  {
    id: 'I07',
    title: 'a program that has a schema open never hears of a later index',
    edits: [
      {
        file: 'src/indexes/trusted.ts',
        find: 'if (seen !== undefined && ageMs < trustMs / 2) return seen.value',
        replace: 'if (seen !== undefined && ageMs < trustMs * 1e6) return seen.value',
      },
    ],
  },
  {
    id: 'I08',
    title: 'a verified read gives entries whose rows are there, whatever these say',
    edits: [
      {
        file: 'src/tables/global-read.ts',
        find: '    if (entry === undefined) return undefined\n',
        replace: '    if (entry === undefined) return { found, fresh: found.stored, row }\n',
      },
    ],
  },
  {
    id: 'I10',
    title: 'an indexed row is what the cell written last says, whatever its ref key',
    edits: [
      {
        file: 'src/cells/index-maintenance.ts',
        find: 'if (latest !== undefined && latest.refKey >= refKey) return new Map()',
        replace: 'if (latest !== undefined && latest.refKey === refKey) return new Map()',
      },
    ],
  },
  {
    id: 'I11',
    title: 'an index over cells of two columns forgets the other one at each put',
    edits: [
      {
        file: 'src/cells/index-maintenance.ts',
        find: '  columns.delete(column)\n',
        replace: '  columns.clear()\n',
      },
    ],
  },
  {
    id: 'I09',
    title: 'a lag is counted from when the relay has read the change',
    edits: [
      {
        file: 'src/tables/index-relay.ts',
        find: 'const lagMicros = this.#lag.add(madeAt, now)',
        replace: 'const lagMicros = this.#lag.add(madeAt, (madeAt + now) / 2)',
      },
    ],
  },
  {
    id: 'I25',
    title: 'a build leaves the entries of rows that programs of before removed meanwhile',
    edits: [
      ...withLaterIndex,
      {
        file: 'src/tables/index-make.ts',
        find: '  const removed = await removeLeftOvers(parts)\n',
        replace: '  const removed = 0\n',
      },
    ],
  },
  {
    id: 'I20',
    title: 'an index over cells that is being dropped is kept by puts for as long as it is there',
    edits: [
      {
        file: 'src/cells/index-service.ts',
        find: "return isOver && state !== 'dropping' ? [definition] : []",
        replace: "return isOver || state === 'dropping' ? [definition] : []",
      },
    ],
  },
  {
    id: 'I21',
    title: 'a drop is at its end when the first shards that it was told of are clear',
    edits: [
      {
        file: 'src/cells/index-drop.ts',
        find: 'const limit = clearedShardsAtOnceMax',
        replace: 'const limit = 2',
      },
      {
        file: 'src/cells/index-drop.ts',
        find: 'if (names.length < limit) return {}',
        replace: 'if (names.length <= limit) return {}',
      },
    ],
  },
  {
    id: 'I22',
    title: 'a purge of the latest cells leaves what their rows have in indexes',
    edits: [
      {
        file: 'src/cells/shard-purge.ts',
        find: 'if (!keepLatest) await keepIndexes',
        replace: 'if (!keepLatest && column !== undefined) await keepIndexes',
      },
    ],
  },
  {
    id: 'I23',
    title: 'the other replica sets never hear of an index over cells',
    edits: [
      {
        file: 'src/cells/index-copies.ts',
        find: 'if (there.version < own.version) await putDefinitions',
        replace: 'if (own.version === 0) await putDefinitions',
      },
    ],
  },
  {
    id: 'I24',
    title: 'all nodes ask the one group that has the definitions of indexes over cells',
    edits: [
      {
        file: 'src/cells/index-service.ts',
        find: 'const name = copyName(datastore, sets.own, sets)',
        replace: 'const name = sets.count > 0 ? datastore : copyName(datastore, sets.own, sets)',
      },
    ],
  },
  {
    id: 'I40',
    title: 'a row without an optional part has no entry in an index that has such rows',
    edits: [
      ...withLaterIndex,
      {
        file: 'src/tables/entries.ts',
        find: 'values[at] === undefined && part.mayBeAbsent !== true',
        replace: 'values[at] === undefined && part.names.length > 0',
      },
    ],
  },
]
