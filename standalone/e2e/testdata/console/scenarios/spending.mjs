// Where the money went: usage by model, the tasks behind a bar, and a statement with a line a task.
import {must} from '../browser.mjs'

export default async ({come, base, key}) => {
	const send = (path, headers = {}) => fetch(base + path, {headers: {Authorization: `Bearer ${key}`, ...headers}})
	const asked = await fetch(base + '/v1/images/generations', {
		method: 'POST', headers: {Authorization: `Bearer ${key}`, Prefer: 'wait'}, body: JSON.stringify({model: 'theta-image-turbo', prompt: 'a ledger'}),
	})
	must(asked.ok, `the submit: ${asked.status}`)
	const v = await come()
	await v.signIn(key)
	await v.go('/usage')
	await v.sees('Group by')
	await v.choose('Model', 'theta-image-turbo')
	await v.holds(() => location.search.includes('model=theta-image-turbo') && document.querySelectorAll('.usage-usagepage table')[0].querySelectorAll('tbody tr').length === 2)
	await v.press('button', 'Show statement')
	await v.sees('Closing balance')
	await v.inspect('statement')

	// A bar leads to its day's tasks of that model.
	const bar = await v.page.evaluate(() => {
		const {right, bottom, width} = document.querySelector('.usage-plot .u-over').getBoundingClientRect()
		return {x: right - width / 60, y: bottom - 3}
	})
	await v.page.mouse.move(bar.x, bar.y)
	await v.page.mouse.click(bar.x, bar.y)
	await v.holds(() => location.pathname === '/console/tasks' && location.search.includes('model=theta-image-turbo') && location.search.includes('created_after='))
	await v.page.waitForSelector('a[href*="/console/tasks/task_"]')

	const file = await (await send('/v1/account/statement?by=task', {Accept: 'text/csv'})).text()
	const [head, ...lines] = file.trim().split('\r\n')
	must(head === 'at,kind,amount,balance,task,model,key,key_name,reference,id', head)
	const tasks = lines.map(line => line.split(',')[4]).filter(Boolean)
	must(tasks.length > 0 && new Set(tasks).size === tasks.length, 'a task has two lines')
	await v.leave()
}
