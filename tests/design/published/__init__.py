"""Published DynamoDB designs, asked of the planner: one module for each, with the keys its authors
chose.
"""
