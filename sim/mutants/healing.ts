/** Planted bugs in what becomes of groups whose rows are wrong at a node. */
import type { Edit, Mutant } from './mutant.ts'

/** Data disks rot in every run: else few seeds have a group that is put aside. */
const rots: Edit = {
  file: 'sim/faults/swarm-faults.ts',
  find: "  ['bit-rot', 150_000, 2, 15],\n",
  replace: "  ['bit-rot', 1_000_000, 2, 6],\n",
}

export const healingMutants: readonly Mutant[] = [
  {
    id: 'HL01',
    title: 'healing: a group that is aside takes steps and votes',
    edits: [
      rots,
      {
        file: 'src/replica/driver.ts',
        find: '    if (this.#comparing.healing.keep(group, event)) return\n',
        replace: '',
      },
    ],
    rules: ['HEAL-4'],
  },
  {
    id: 'HL02',
    title: 'healing: a group that is aside is served from its rows',
    edits: [
      rots,
      {
        file: 'src/replica/reads.ts',
        find: '    if (this.#parts.isAside(group)) throw new DamagedGroup(group)\n',
        replace: '',
      },
    ],
    rules: ['HEAL-4'],
  },
  {
    id: 'HL03',
    title: 'healing: damage in a group is found, and the group goes on',
    edits: [
      rots,
      {
        file: 'src/store/data-store.ts',
        find: 'const isMended = group !== undefined && this.onGroupDamaged(group)\n',
        replace: 'const isMended = group !== undefined\n',
      },
    ],
  },
  {
    id: 'HL04',
    title: 'healing: only a higher position mends a group',
    edits: [
      rots,
      {
        file: 'src/replica/healing.ts',
        find: 'return this.#ill.has(group) ? applied - 1 : applied\n',
        replace: 'return applied\n',
      },
    ],
  },
  {
    id: 'HL05',
    title: 'healing: a start forgets which groups are aside',
    edits: [
      rots,
      {
        file: 'src/replica/driver.ts',
        find: '    await this.#comparing.healing.resume()\n',
        replace: '',
      },
    ],
  },
  {
    id: 'HL06',
    title: 'healing: a snapshot of an equal position takes the place of a group that is not aside',
    edits: [
      rots,
      {
        file: 'src/replica/installs.ts',
        find: '    const isSame = isRepair && position === here.position\n',
        replace: '    const isSame = position === here.position\n',
      },
      {
        file: 'src/replica/installs.ts',
        find: '    const lowest = isRepair ? position : position - 1\n',
        replace: '    const lowest = position\n',
      },
      {
        file: 'src/replica/healing.ts',
        find: 'return this.#ill.has(group) ? applied - 1 : applied\n',
        replace: 'return applied - 1\n',
      },
    ],
    rules: ['SNAP-1', 'MVCC-2'],
  },
  {
    id: 'HL07',
    title: 'comparison: two nodes of which one is behind count as different',
    edits: [
      rots,
      {
        file: 'src/peers/comparison.ts',
        find: "  if (own?.position !== position || hash.length === 0) return 'unequal'\n",
        replace: "  if (own === undefined || hash.length === 0) return 'unequal'\n",
      },
    ],
  },
  {
    id: 'HL08',
    title: 'comparison: a bucket still counts what a group was',
    edits: [
      rots,
      {
        file: 'src/store/bucket-sums.ts',
        find: '    if (before !== undefined && before.position > 0) sum?.subtract(...fieldsOf(group, before))\n',
        replace: '',
      },
    ],
    rules: ['HEAL-1'],
  },
]
