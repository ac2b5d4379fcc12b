/** A file that a command writes must not be one that it reads: it is cut to nothing as it is opened. */
import { isSameFile } from '../adapters/same-file.ts'
import { CliError, exitUsage } from './exit.ts'

/** Throws a usage error when `output` is `input`, by whatever name. */
export async function refuseInput(flag: string, output: unknown, input: string): Promise<void> {
  if (typeof output !== 'string' || !(await isSameFile(output, input))) return
  throw new CliError(`${flag} ${output} is the file that is read; name another one`, exitUsage)
}
