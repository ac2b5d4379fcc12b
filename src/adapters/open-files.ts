/** How many files and connections this process may have open at once. */
import { readFileSync } from 'node:fs'

/** Undefined where the system sets no bound, or does not tell it. */
export function openFilesMax(): number | undefined {
  return fromProc() ?? fromReport()
}

/** Linux. */
function fromProc(): number | undefined {
  try {
    const limits = readFileSync('/proc/self/limits', 'utf8')
    return parseCount(/^Max open files\s+(\S+)/m.exec(limits)?.[1])
  } catch {
    // Another system, or no /proc.
    return undefined
  }
}

function fromReport(): number | undefined {
  const report: unknown = process.report?.getReport()
  const limits = readMember(report, 'userLimits')
  const soft = readMember(readMember(limits, 'open_files'), 'soft')
  return typeof soft === 'number' || typeof soft === 'string' ? parseCount(String(soft)) : undefined
}

function readMember(value: unknown, name: string): unknown {
  if (typeof value !== 'object' || value === null) return undefined
  return Object.entries(value).find(([key]) => key === name)?.[1]
}

function parseCount(text: string | undefined): number | undefined {
  const count = Number(text)
  return text !== undefined && Number.isSafeInteger(count) ? count : undefined
}
