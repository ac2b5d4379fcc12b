/** Planted bugs in tables and transactions, on the way from the client library to the log. */
import type { Mutant } from './mutant.ts'

export const tableMutants: readonly Mutant[] = [
  {
    id: 'T20',
    title: 'a put takes away what the program that makes it does not know',
    edits: [
      {
        file: 'src/tables/row-value.ts',
        find: 'if (isOthers) byNumber.set(number, value)',
        replace: 'if (isOthers) continue',
      },
    ],
  },
  {
    id: 'T01',
    title: 'a changed row leaves its old entry in an index',
    edits: [
      {
        file: 'src/tables/write-rows.ts',
        find: 'if (!now.has(key) && fitsIndex(index, entry)) this',
        replace: 'if (now.size === 0 && !now.has(key) && fitsIndex(index, entry)) this',
      },
    ],
  },
  {
    id: 'T21',
    title: 'rows that go with the one above them leave their entries',
    edits: [
      {
        file: 'src/tables/write-rows.ts',
        find: '    await this.#changeEntries(table, rowAt(table, values, stored.value), undefined)\n    this.#transaction.delete(stored.key)\n',
        replace:
          '    if (values.length < 0) await this.#changeEntries(table, rowAt(table, values, stored.value), undefined)\n' +
          '    this.#transaction.delete(stored.key)\n',
      },
    ],
  },
  {
    id: 'T23',
    title: 'a row that has expired is seen through an index',
    edits: [
      {
        file: 'src/tables/read-rows.ts',
        find: 'return stored === undefined || !isGone({ table, values, stored }, asOf)',
        replace:
          'return stored === undefined || asOf !== undefined || !isGone({ table, values, stored }, asOf)',
      },
    ],
  },
  {
    id: 'T26',
    title: 'a scan shows rows that have expired',
    edits: [
      {
        file: 'src/tables/read-rows.ts',
        find: 'if (found?.table !== table || isGone({ ...found, stored }, asOf)) return undefined',
        replace:
          'if (found?.table !== table || isGone({ ...found, stored }, asOf && 1)) return undefined',
      },
    ],
  },
  {
    id: 'T27',
    title: 'a deletion does not look for holds',
    edits: [
      {
        file: 'src/tables/write-rows.ts',
        find: 'refuseHeld(keyInWords(this.#context, bytes), holds, (',
        replace: 'refuseHeld(keyInWords(this.#context, bytes), holds.slice(0, 0), (',
      },
    ],
    rules: ['HOLD-1'],
  },
  {
    id: 'T29',
    title: 'a purge leaves moments before it to be read',
    edits: [
      {
        file: 'src/txn/local-groups.ts',
        find: '      checkNotPurged(replica, group, timestamp)\n',
        replace: '',
      },
    ],
    rules: ['PURGE-1'],
  },
  {
    id: 'T08',
    title: 'what a transaction has read is taken for one entry newer than it was',
    edits: [
      {
        file: 'src/txn/raw-transaction.ts',
        find: 'readPosition: view?.position ?? 0,',
        replace: 'readPosition: view === undefined ? 0 : view.position + 1,',
      },
    ],
  },
  {
    id: 'T09',
    title: 'a put that finds the cell of an earlier try of its own says that others wrote it',
    edits: [
      {
        file: 'src/cells/put.ts',
        find: 'const created = wasCreatedBy(value.row, creator)',
        replace: 'const created = wasCreatedBy(value.row, creator.subarray(1))',
      },
    ],
  },
  {
    id: 'T10',
    title: 'a snapshot of a session is older than what it has seen',
    edits: [
      {
        file: 'src/txn/local-groups.ts',
        find: 'replica.read(group, level, timeoutMs, atLeast)',
        replace: "replica.read(group, level, timeoutMs, level === 'snapshot' ? 0 : atLeast)",
      },
    ],
  },
  {
    id: 'T02',
    title: 'the range of a scan is not among what the transaction has read',
    edits: [
      {
        file: 'src/txn/raw-transaction.ts',
        find: '      this.#reads.addRange(seen)\n',
        replace: '',
      },
    ],
  },
  {
    id: 'T03',
    title: 'a commit that is sent again goes under an intent of its own',
    edits: [
      {
        file: 'src/client/commit-call.ts',
        find: '    return { operation: this.#operation }\n',
        replace:
          '    const { submission } = this.#operation\n' +
          '    const { intent } = submission\n' +
          '    const sequence = intent.sequence + (this.#isUnsure ? 1_000_000 : 0)\n' +
          '    const again = { ...submission, intent: { ...intent, sequence } }\n' +
          '    return { operation: { ...this.#operation, submission: again } }\n',
      },
    ],
  },
  {
    id: 'T04',
    title: 'a scan does not show what its own transaction has written',
    edits: [
      {
        file: 'src/txn/raw-transaction.ts',
        find: 'const ascending = this.#writes.inRange(range)',
        replace: 'const ascending = this.#writes.inRange({ gte: range.gte, lt: range.gte })',
      },
    ],
  },
  {
    id: 'T05',
    title: 'the second row with a number takes the number of the first',
    edits: [
      {
        file: 'src/tables/write-rows.ts',
        find: 'const allocation = this.#transaction.allocationCount\n',
        replace: 'const allocation = Math.max(0, this.#transaction.allocationCount - 1)\n',
      },
    ],
  },
  {
    id: 'T06',
    title: 'a read goes on at whatever the next node that answers has',
    edits: [
      {
        file: 'src/client/groups.ts',
        find: 'asOf === undefined ?',
        replace: 'asOf !== 0 ?',
      },
    ],
  },
  {
    id: 'T07',
    title: 'an update forgets the properties that its program does not know',
    edits: [
      {
        file: 'src/tables/write-rows.ts',
        find: 'const value = encodeChanged(stored.value, changes)\n',
        replace:
          'const own = [...changes].map(([{ name }, one]) => [name, one] as const)\n' +
          '    const value = encodeRow(table, { ...before, ...Object.fromEntries(own) })\n',
      },
    ],
  },
]
