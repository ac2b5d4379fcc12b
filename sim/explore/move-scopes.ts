/**
 * The scopes in which a group leaves its set (MOVE-9): the entry by which it does is the last one that the set chooses, whatever
 * else is under way. And those in which it comes to the next set (MOVE-10): that set chooses nothing at the positions before.
 */
import { nothing, submission, type Scope } from './scope.ts'

const moving = { ...nothing, positions: 2, timers: ['proposal', 'catch-up', 'sweep'] } as const
const leaving = { isMove: true } as const

const arriving = {
  ...nothing,
  isArrival: true,
  prologue: 1,
  positions: 2,
  snapshots: 1,
  timers: ['proposal', 'catch-up', 'sweep', 'read'],
  submissions: [submission(0, 'm', leaving), submission(1, 'b')],
  isEachForItself: false,
} as const

/** Small ones first. */
export const moveScopes: readonly Scope[] = [
  {
    ...moving,
    name: 'move',
    title: 'the leader moves the group away while another node forwards a write',
    submissions: [submission(0, 'm', leaving), submission(1, 'b')],
    isEachForItself: false,
  },
  {
    ...moving,
    name: 'move-read',
    title: 'a node that is behind reads and writes once the group has left',
    submissions: [submission(0, 'm', leaving), submission(1, 'b', { after: 0 })],
    reads: [2],
    isEachForItself: false,
  },
  {
    ...moving,
    name: 'move-rivals',
    title: 'one node moves the group away, and another one proposes a write of its own',
    submissions: [submission(0, 'm', leaving), submission(1, 'b')],
  },
  {
    ...moving,
    name: 'move-twice',
    title: 'two nodes move the group away at once',
    submissions: [submission(0, 'm', leaving), submission(1, 'n', leaving)],
  },
  {
    ...moving,
    name: 'move-crash',
    title: 'the leader moves the group away and crashes, and another node writes',
    submissions: [submission(0, 'm', leaving), submission(1, 'b')],
    crashes: 1,
    isEachForItself: false,
  },
  {
    ...arriving,
    name: 'arrive',
    title: 'one node of the next set has the group and writes, and another one reads',
    reads: [2],
  },
  {
    ...arriving,
    name: 'arrive-crash',
    title: 'one node of the next set has the group, writes, and crashes',
    crashes: 1,
  },
]
