/** Planted bugs of what a node remembers of its peers' stores (LOG-10 to LOG-12). */
import type { Mutant } from './mutant.ts'

export const memoryMutants: readonly Mutant[] = [
  {
    id: 'MEM1',
    title: 'joining: a peer is let in before its store stands in the log',
    edits: [
      {
        file: 'src/log/peer-memory.ts',
        find: '    if (!this.isUnsaved) return after()\n',
        replace: '    if (!this.isUnsaved || this.#changes > 0) return after()\n',
      },
    ],
  },
  {
    id: 'MEM2',
    title: 'joining: a node that has lost its memory of stores lets in who comes',
    edits: [
      {
        file: 'src/peers/admission.ts',
        find: '    if (!memory.isWhole) return forgetful\n',
        replace: '    if (!memory.isWhole) memory.restore(0, nodes.length - 1)\n',
      },
    ],
  },
  {
    id: 'MEM3',
    title: 'joining: a flush is told of that is not on the disk yet',
    edits: [
      {
        file: 'src/peers/peers.ts',
        find: 'const frame = { durableFlush: this.#options.log.durableFlush, messages }',
        replace: 'const frame = { durableFlush: this.#options.log.lastFlush, messages }',
      },
    ],
  },
  {
    id: 'MEM4',
    title: 'joining: an idle node forgets how far the logs of its peers are',
    edits: [
      {
        file: 'src/peers/peers.ts',
        find: '    // With a commit it goes along; an idle node keeps it, too.\n    this.#options.remember()\n',
        replace: '',
      },
    ],
  },
  {
    id: 'MEM5',
    title: 'joining: what a peer said before it went on writing is taken for an old disk',
    edits: [
      {
        file: 'src/peers/admission.ts',
        find: '  if (isSameIncarnation && known.run === run) return undefined\n',
        replace: '',
      },
    ],
  },
  {
    id: 'MEM7',
    title: 'joining: a node retires for whatever a peer says of its store',
    edits: [
      {
        file: 'src/peers/refusal.ts',
        find: '  if (flush !== undefined) return judged(flush, own.openedFlush)\n',
        replace: "  if (flush !== undefined) return 'fatal'\n",
      },
    ],
  },
  {
    id: 'MEM6',
    title: 'joining: of what vouchers tell the first is taken, whoever was further',
    edits: [
      {
        file: 'src/log/peer-memory.ts',
        find: '    const durableFlush = Math.max(news.durableFlush, known?.durableFlush ?? 0)\n',
        replace: '    const durableFlush = known?.durableFlush ?? news.durableFlush\n',
      },
    ],
  },
]
