export default { path: '/photos/2024/lake' };
