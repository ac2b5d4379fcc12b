/** Bytes that a disk has written, by the counters of the device. */
import { readFile, stat } from 'node:fs/promises'
import { tmpdir } from 'node:os'

const sectorBytes = 512

/**
 * Bytes that the device below `folder` (default: where benchmarks keep their data) has written since the machine
 * started, for all processes. The counts of a process (`clusterWrittenBytes`) tell more than that where a file was made
 * by large writes: the kernel keeps such a file in large pages of its cache, and counts a whole one for each write into
 * it, though only the changed blocks reach the disk. NaN where the system tells nothing of the device.
 */
export async function deviceWrittenBytes(folder: string = tmpdir()): Promise<number> {
  const { dev } = await stat(folder)
  const device = `${major(dev)} ${minor(dev)}`
  const lines = await readFile('/proc/diskstats', 'utf8')
  for (const line of lines.split('\n')) {
    const fields = line.trim().split(/\s+/)
    if (`${fields[0]} ${fields[1]}` === device) return Number(fields[9]) * sectorBytes
  }
  return Number.NaN
}

/** As `makedev(3)` packs them. */
function major(dev: number): number {
  return (dev >> 8) & 0xfff
}

function minor(dev: number): number {
  return (dev & 0xff) | ((dev >> 12) & 0xfff00)
}
