/** Planted bugs in the hash of a group's rows: what it counts, and where it is kept. */
import type { Mutant } from './mutant.ts'

export const hashMutants: readonly Mutant[] = [
  {
    id: 'HS01',
    title: 'hashes: a row that is superseded still counts',
    edits: [
      {
        file: 'src/store/group-batch.ts',
        find: '      sum?.subtract(row.key, stored.stamp, stored.payload)\n',
        replace: '',
      },
    ],
    rules: ['HASH-1'],
  },
  {
    id: 'HS02',
    title: 'hashes: a row that is deleted still counts',
    edits: [
      {
        file: 'src/store/group-batch.ts',
        find: '      sum?.subtract(row.key, stored.stamp, stored.payload)\n',
        replace:
          '      if (row.value !== undefined) sum?.subtract(row.key, stored.stamp, stored.payload)\n',
      },
    ],
    rules: ['HASH-1'],
  },
  {
    id: 'HS03',
    title: 'hashes: a row still counts that is superseded by one too old for history',
    edits: [
      {
        file: 'src/store/group-batch.ts',
        find: 'isNew || (sum === undefined && !isRead)',
        replace: 'isNew || !isRead',
      },
    ],
    rules: ['HASH-1'],
  },
  {
    id: 'HS04',
    title: 'hashes: a snapshot that is taken in leaves the group without a hash',
    edits: [
      {
        file: 'src/store/data-store.ts',
        find: 'encodeState(key, position, own, state, hash)',
        replace: 'encodeState(key, position, own, state)',
      },
    ],
    rules: ['HASH-1'],
  },
  {
    id: 'HS05',
    title: 'hashes: a start that ends the switch of a snapshot does not know its hash',
    edits: [
      {
        file: 'src/store/snapshot-intake.ts',
        find: '  return { position, horizonBefore, horizon, state, hash }\n',
        replace: '  return { position, horizonBefore, horizon, state, hash: hash && undefined }\n',
      },
    ],
    rules: ['HASH-1'],
  },
  {
    id: 'HS06',
    title: 'hashes: batches go on from the hash before a snapshot',
    edits: [
      {
        file: 'src/store/data-store.ts',
        find: '      this.hashes.onInstalled(group, position, hash)\n',
        replace: '',
      },
    ],
    rules: ['HASH-1'],
  },
  {
    id: 'HS07',
    title: 'hashes: a batch goes on from the hash of the one before the last',
    edits: [
      {
        file: 'src/store/group-hashes.ts',
        find: '    if (isHashed && sum !== undefined) this.#set(group, before, { position, hash: sum.hash })\n',
        replace:
          '    if (isHashed && sum !== undefined) {\n      if (!this.#young.has(group)) this.#set(group, before, { position, hash: sum.hash })\n    }\n',
      },
    ],
    rules: ['HASH-1'],
  },
  {
    id: 'HS08',
    title: 'hashes: a state record has the hash of rows that its batch does not put',
    edits: [
      {
        file: 'src/store/group-batch.ts',
        find: '    if (value !== undefined) sum?.add(row.key, timestamp, value)\n',
        replace:
          '    for (const one of [row, row.previous]) if (one?.value !== undefined) sum?.add(one.key, one.timestamp, one.value)\n',
      },
    ],
    rules: ['HASH-1'],
  },
  {
    id: 'HS09',
    title: 'hashes: history that a snapshot brings counts as rows',
    edits: [
      {
        file: 'src/store/snapshot-intake.ts',
        find: '      if (subspace === rowSubspace) this.#noteRow(row)\n',
        replace: '      this.#noteRow(row)\n',
      },
    ],
    rules: ['HASH-1'],
  },
]
