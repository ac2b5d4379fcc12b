/** Snapshots of groups that a node sends and takes, in figures and in words. */
import type { SnapshotFigures } from '../replica/replica-status.ts'
import type { Figure } from './metrics.ts'

export function snapshotFigures(snapshots: SnapshotFigures | undefined): readonly Figure[] {
  if (snapshots === undefined) return []
  const { sent, sentBytes, sending, pace, taken, taking, waiting } = snapshots
  return [
    {
      name: 'trilithon_snapshots_sent_total',
      help: 'Snapshots of groups that this node has sent whole to others.',
      value: sent,
    },
    {
      name: 'trilithon_snapshots_sent_bytes_total',
      help: 'Bytes of the parts of snapshots that this node has sent.',
      value: sentBytes,
    },
    {
      name: 'trilithon_snapshots_sending',
      help: 'Snapshots that this node keeps open for others, which ask for their parts.',
      value: sending,
    },
    {
      name: 'trilithon_snapshots_pace',
      help: 'The part of snapshot_bytes_per_second that is sent: less than 1 while commits take long.',
      value: pace,
    },
    {
      name: 'trilithon_snapshots_taken_total',
      help: 'Snapshots of groups from others that took a group on at this node.',
      value: taken,
    },
    {
      name: 'trilithon_snapshots_taking',
      help: 'Snapshots of groups on their way to this node.',
      value: taking,
    },
    {
      name: 'trilithon_snapshots_waiting',
      help: 'Groups whose snapshots wait until others have come.',
      value: waiting,
    },
  ]
}

/** The snapshots under way, in words; empty when there are none. */
export function describeSnapshots({
  sending,
  pace,
  taking,
  waiting,
}: SnapshotFigures): readonly string[] {
  const messages: string[] = []
  if (taking + waiting > 0) {
    messages.push(
      `this node takes ${countText(taking)} from others, and ${waiting} more groups wait for one`,
    )
  }
  if (sending > 0) {
    const slower =
      pace < 1 ? `, at ${Math.round(100 * pace)} % of the pace while commits take long` : ''
    messages.push(`this node sends ${countText(sending)}${slower}`)
  }
  return messages
}

function countText(count: number): string {
  return count === 1 ? '1 snapshot of a group' : `${count} snapshots of groups`
}
