import { total } from './app'

export function View() {
  return <p>{total([])}</p>
}
