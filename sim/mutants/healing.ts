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
]
