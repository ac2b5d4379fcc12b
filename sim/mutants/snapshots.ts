/** Planted bugs in snapshots of groups: how they are read, taken in, and taken up. */
import type { Mutant } from './mutant.ts'

export const snapshotMutants: readonly Mutant[] = [
  {
    id: 'SN01',
    title: 'snapshots: a snapshot takes away the acceptances above it',
    edits: [
      {
        file: 'src/replication/install.ts',
        find: '  for (const known of log.records.keys()) if (known <= position) log.records.delete(known)\n',
        replace: '  log.records.clear()\n',
      },
    ],
    scopes: ['snapshot-above'],
  },
  {
    id: 'SN02',
    title: 'snapshots: an old snapshot takes the place of a newer state',
    edits: [
      {
        file: 'src/replica/installs.ts',
        find: '    if (position <= here.position && !isSame) {\n',
        replace: '    if (position < 1 && !isSame) {\n',
      },
      {
        // Timestamps rise with positions: it alone would say so.
        file: 'src/replica/installs.ts',
        find: '    if (!isLater || horizon < here.horizon || !isRight) {\n',
        replace: '    if ((!isLater && timestamp < 1) || horizon < 0 || !isRight) {\n',
      },
    ],
  },
  {
    id: 'SN03',
    title: 'snapshots: a snapshot is taken without its sessions',
    edits: [
      {
        file: 'src/replication/state.ts',
        find: '  replaceAll(state.sessions, sessions)\n',
        replace: '  void sessions\n',
      },
    ],
  },
  {
    id: 'SN04',
    title: 'snapshots: old rows stay beside those of a snapshot',
    edits: [
      {
        file: 'src/store/snapshot-intake.ts',
        find: '      for (const { key } of rows) if (!kept.has(latin1(key))) deletes.push({ key })\n',
        replace:
          '      for (const { key } of rows) if (kept.has(latin1(key))) deletes.push({ key })\n',
      },
    ],
  },
  {
    id: 'SN05',
    title: 'snapshots: a snapshot is sent without the history of the rows',
    edits: [
      {
        file: 'src/store/data-store.ts',
        find: '    const rows = this.#scan(allOf(prefix), (some) =>\n',
        replace:
          '    const rows = this.#scan({ ...allOf(prefix), lt: historyPrefix(prefix) }, (some) =>\n',
      },
    ],
  },
  {
    id: 'SN06',
    title: 'snapshots: a snapshot is read while a batch lands',
    edits: [
      {
        file: 'src/store/data-store.ts',
        find: '    if (read()?.stamp === before.stamp) return',
        replace: '    if (read() !== undefined) return',
      },
    ],
  },
  {
    id: 'SN07',
    title: 'snapshots: a group goes on while a snapshot takes its place',
    edits: [
      {
        file: 'src/replica/installs.ts',
        find: '    if (aside === undefined) return false\n    const isLost',
        replace:
          "    if (aside === undefined || event.kind !== 'wake') return false\n    const isLost",
      },
    ],
  },
  {
    id: 'SN08',
    title: 'snapshots: the rows of a group go before the snapshot in their place is durable',
    edits: [
      {
        file: 'src/store/snapshot-intake.ts',
        find: "    await this.#store.writeAlong([stagingRecord(this.#group, 'switching', hashed)])\n",
        replace: '',
      },
    ],
  },
  {
    id: 'SN09',
    title:
      'snapshots: snapshots that readers hold stay open when the past of the group is another one',
    edits: [
      {
        file: 'src/store/data-store.ts',
        find: '    this.pins.forgetAll(group)\n',
        replace: '',
      },
    ],
  },
  {
    id: 'SN10',
    title:
      'snapshots: transactions are validated as if nothing was written in what a snapshot brought',
    edits: [
      {
        file: 'src/replication/install.ts',
        find: '  log.window.restart(position)\n',
        replace: '',
      },
    ],
  },
  {
    id: 'SN11',
    title: 'snapshots: the worklist does not list what a snapshot brought',
    edits: [
      {
        file: 'src/store/data-store.ts',
        find: '      this.listing.install(group, position, topics)\n',
        replace: '',
      },
    ],
  },
  {
    id: 'SN12',
    title: 'snapshots: rows that were read before a snapshot are shown after it',
    edits: [
      {
        file: 'src/store/data-store.ts',
        find: '    this.#cache.dropGroup(group)\n',
        replace: '',
      },
    ],
  },
  {
    id: 'SN13',
    title: 'snapshots: a start clears a snapshot whose switch was under way',
    edits: [
      {
        file: 'src/store/snapshot-intake.ts',
        find: '    if (taken !== undefined) {\n      await switchStaged',
        replace: '    if (taken?.position === 0) {\n      await switchStaged',
      },
    ],
  },
  {
    id: 'SN14',
    title: 'snapshots: reads see the rows of a snapshot beside the state before it',
    edits: [
      {
        file: 'src/replica/installs.ts',
        find: '    return this.#aside.get(group)?.back\n',
        replace: '    return this.#aside.size < 0 ? this.#aside.get(group)?.back : undefined\n',
      },
    ],
  },
  {
    id: 'SN15',
    title: 'snapshots: a switch goes on without the rest of a large snapshot',
    edits: [
      {
        file: 'src/store/snapshot-intake.ts',
        find: "    await this.#putDown()\n    await this.#store.writeAlong([stagingRecord(this.#group, 'switching', hashed)])",
        replace:
          "    await this.#store.writeAlong([stagingRecord(this.#group, 'switching', hashed)])",
      },
    ],
  },
]
