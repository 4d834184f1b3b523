module @jit_one_hot attributes {jax.uses_shape_polymorphism = false, mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main(%arg0: tensor<9xi32>) -> (tensor<9x4xf64> {jax.result_info = "result[0]"}, tensor<9xi32> {jax.result_info = "result[1]"}, tensor<9xi32> {jax.result_info = "result[2]"}, tensor<4xi32> {jax.result_info = "result[3]"}) {
    %c = stablehlo.constant dense<9> : tensor<i64>
    %c_0 = stablehlo.constant dense<1> : tensor<i64>
    %c_1 = stablehlo.constant dense<4> : tensor<i64>
    %c_2 = stablehlo.constant dense<0> : tensor<i64>
    %c_3 = stablehlo.constant dense<[1, 3]> : tensor<2xi64>
    %0 = call @_one_hot(%arg0) : (tensor<9xi32>) -> tensor<9x4xf64>
    %1 = stablehlo.iota dim = 0 : tensor<4xi64>
    %2 = call @searchsorted(%1, %arg0) : (tensor<4xi64>, tensor<9xi32>) -> tensor<9xi32>
    %3 = call @digitize(%arg0, %c_3) : (tensor<9xi32>, tensor<2xi64>) -> tensor<9xi32>
    %4:2 = call @_unique_sorted_mask(%arg0) : (tensor<9xi32>) -> (tensor<9xi32>, tensor<9xi1>)
    %5 = call @cumsum(%4#1) : (tensor<9xi1>) -> tensor<9xi64>
    %6 = stablehlo.broadcast_in_dim %c_2, dims = [] : (tensor<i64>) -> tensor<4xi64>
    %7 = call @clip(%5, %c_2) : (tensor<9xi64>, tensor<i64>) -> tensor<9xi64>
    %8 = stablehlo.broadcast_in_dim %c_2, dims = [] : (tensor<i64>) -> tensor<9xi64>
    %9 = stablehlo.compare LT, %7, %8, SIGNED : (tensor<9xi64>, tensor<9xi64>) -> tensor<9xi1>
    %10 = stablehlo.broadcast_in_dim %c_1, dims = [] : (tensor<i64>) -> tensor<9xi64>
    %11 = stablehlo.add %7, %10 : tensor<9xi64>
    %12 = stablehlo.select %9, %11, %7 : tensor<9xi1>, tensor<9xi64>
    %13 = stablehlo.convert %12 : (tensor<9xi64>) -> tensor<9xi32>
    %14 = stablehlo.broadcast_in_dim %13, dims = [0] : (tensor<9xi32>) -> tensor<9x1xi32>
    %15 = stablehlo.broadcast_in_dim %c_0, dims = [] : (tensor<i64>) -> tensor<9xi64>
    %16 = "stablehlo.scatter"(%6, %14, %15) <{scatter_dimension_numbers = #stablehlo.scatter<inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>}> ({
    ^bb0(%arg1: tensor<i64>, %arg2: tensor<i64>):
      %28 = stablehlo.add %arg1, %arg2 : tensor<i64>
      stablehlo.return %28 : tensor<i64>
    }) : (tensor<4xi64>, tensor<9x1xi32>, tensor<9xi64>) -> tensor<4xi64>
    %17 = call @cumsum_6(%16) : (tensor<4xi64>) -> tensor<4xi64>
    %18 = call @floor_divide_8(%17, %c_0) : (tensor<4xi64>, tensor<i64>) -> tensor<4xi64>
    %19 = call @remainder(%18, %c) : (tensor<4xi64>, tensor<i64>) -> tensor<4xi64>
    %20 = stablehlo.broadcast_in_dim %c_2, dims = [] : (tensor<i64>) -> tensor<4xi64>
    %21 = stablehlo.compare LT, %19, %20, SIGNED : (tensor<4xi64>, tensor<4xi64>) -> tensor<4xi1>
    %22 = stablehlo.broadcast_in_dim %c, dims = [] : (tensor<i64>) -> tensor<4xi64>
    %23 = stablehlo.add %19, %22 : tensor<4xi64>
    %24 = stablehlo.select %21, %23, %19 : tensor<4xi1>, tensor<4xi64>
    %25 = stablehlo.convert %24 : (tensor<4xi64>) -> tensor<4xi32>
    %26 = stablehlo.broadcast_in_dim %25, dims = [0] : (tensor<4xi32>) -> tensor<4x1xi32>
    %27 = "stablehlo.gather"(%4#0, %26) <{dimension_numbers = #stablehlo.gather<collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1>, slice_sizes = array<i64: 1>}> : (tensor<9xi32>, tensor<4x1xi32>) -> tensor<4xi32>
    return %0, %2, %3, %27 : tensor<9x4xf64>, tensor<9xi32>, tensor<9xi32>, tensor<4xi32>
  }
  func.func private @_one_hot(%arg0: tensor<9xi32>) -> tensor<9x4xf64> {
    %0 = stablehlo.broadcast_in_dim %arg0, dims = [0] : (tensor<9xi32>) -> tensor<9x1xi32>
    %1 = stablehlo.iota dim = 1 : tensor<1x4xi32>
    %2 = stablehlo.broadcast_in_dim %0, dims = [0, 1] : (tensor<9x1xi32>) -> tensor<9x4xi32>
    %3 = stablehlo.broadcast_in_dim %1, dims = [0, 1] : (tensor<1x4xi32>) -> tensor<9x4xi32>
    %4 = stablehlo.compare EQ, %2, %3, SIGNED : (tensor<9x4xi32>, tensor<9x4xi32>) -> tensor<9x4xi1>
    %5 = stablehlo.convert %4 : (tensor<9x4xi1>) -> tensor<9x4xf64>
    return %5 : tensor<9x4xf64>
  }
  func.func private @searchsorted(%arg0: tensor<4xi64>, %arg1: tensor<9xi32>) -> tensor<9xi32> {
    %0 = stablehlo.convert %arg1 : (tensor<9xi32>) -> tensor<9xi64>
    %1 = call @_searchsorted_scan_impl(%arg0, %0) : (tensor<4xi64>, tensor<9xi64>) -> tensor<9xi32>
    return %1 : tensor<9xi32>
  }
  func.func private @_searchsorted_scan_impl(%arg0: tensor<4xi64>, %arg1: tensor<9xi64>) -> tensor<9xi32> {
    %0 = call @_searchsorted_scan_impl_0(%arg0, %arg1) : (tensor<4xi64>, tensor<9xi64>) -> tensor<9xi32>
    return %0 : tensor<9xi32>
  }
  func.func private @_searchsorted_scan_impl_0(%arg0: tensor<4xi64>, %arg1: tensor<9xi64>) -> tensor<9xi32> {
    %c = stablehlo.constant dense<1> : tensor<i64>
    %c_0 = stablehlo.constant dense<3> : tensor<i64>
    %c_1 = stablehlo.constant dense<0> : tensor<i64>
    %c_2 = stablehlo.constant dense<4> : tensor<ui32>
    %c_3 = stablehlo.constant dense<0> : tensor<ui32>
    %0 = stablehlo.broadcast_in_dim %c_3, dims = [] : (tensor<ui32>) -> tensor<9xui32>
    %1 = stablehlo.broadcast_in_dim %c_2, dims = [] : (tensor<ui32>) -> tensor<9xui32>
    %2:5 = stablehlo.while(%iterArg = %arg0, %iterArg_4 = %arg1, %iterArg_5 = %c_1, %iterArg_6 = %0, %iterArg_7 = %1) : tensor<4xi64>, tensor<9xi64>, tensor<i64>, tensor<9xui32>, tensor<9xui32>
    cond {
      %4 = stablehlo.compare LT, %iterArg_5, %c_0, SIGNED : (tensor<i64>, tensor<i64>) -> tensor<i1>
      stablehlo.return %4 : tensor<i1>
    } do {
      %4:2 = func.call @closed_call(%iterArg, %iterArg_4, %iterArg_6, %iterArg_7) : (tensor<4xi64>, tensor<9xi64>, tensor<9xui32>, tensor<9xui32>) -> (tensor<9xui32>, tensor<9xui32>)
      %5 = stablehlo.add %iterArg_5, %c : tensor<i64>
      stablehlo.return %iterArg, %iterArg_4, %5, %4#0, %4#1 : tensor<4xi64>, tensor<9xi64>, tensor<i64>, tensor<9xui32>, tensor<9xui32>
    }
    %3 = stablehlo.convert %2#4 : (tensor<9xui32>) -> tensor<9xi32>
    return %3 : tensor<9xi32>
  }
  func.func private @closed_call(%arg0: tensor<4xi64>, %arg1: tensor<9xi64>, %arg2: tensor<9xui32>, %arg3: tensor<9xui32>) -> (tensor<9xui32>, tensor<9xui32>) {
    %c = stablehlo.constant dense<2> : tensor<i64>
    %0 = stablehlo.subtract %arg3, %arg2 : tensor<9xui32>
    %1 = call @floor_divide(%0, %c) : (tensor<9xui32>, tensor<i64>) -> tensor<9xui32>
    %2 = stablehlo.add %arg2, %1 : tensor<9xui32>
    %3 = stablehlo.broadcast_in_dim %2, dims = [0] : (tensor<9xui32>) -> tensor<9x1xui32>
    %4 = "stablehlo.gather"(%arg0, %3) <{dimension_numbers = #stablehlo.gather<offset_dims = [1], start_index_map = [0], index_vector_dim = 1>, slice_sizes = array<i64: 1>}> : (tensor<4xi64>, tensor<9x1xui32>) -> tensor<9x1xi64>
    %5 = stablehlo.reshape %4 : (tensor<9x1xi64>) -> tensor<9xi64>
    %6 = stablehlo.compare LE, %arg1, %5, SIGNED : (tensor<9xi64>, tensor<9xi64>) -> tensor<9xi1>
    %7 = stablehlo.select %6, %arg2, %2 : tensor<9xi1>, tensor<9xui32>
    %8 = stablehlo.select %6, %2, %arg3 : tensor<9xi1>, tensor<9xui32>
    return %7, %8 : tensor<9xui32>, tensor<9xui32>
  }
  func.func private @floor_divide(%arg0: tensor<9xui32>, %arg1: tensor<i64>) -> tensor<9xui32> {
    %0 = stablehlo.convert %arg1 : (tensor<i64>) -> tensor<ui32>
    %1 = stablehlo.broadcast_in_dim %0, dims = [] : (tensor<ui32>) -> tensor<9xui32>
    %2 = stablehlo.divide %arg0, %1 : tensor<9xui32>
    return %2 : tensor<9xui32>
  }
  func.func private @digitize(%arg0: tensor<9xi32>, %arg1: tensor<2xi64>) -> tensor<9xi32> {
    %c = stablehlo.constant dense<2> : tensor<i32>
    %0 = stablehlo.slice %arg1 [1:2] : (tensor<2xi64>) -> tensor<1xi64>
    %1 = stablehlo.reshape %0 : (tensor<1xi64>) -> tensor<i64>
    %2 = stablehlo.slice %arg1 [0:1] : (tensor<2xi64>) -> tensor<1xi64>
    %3 = stablehlo.reshape %2 : (tensor<1xi64>) -> tensor<i64>
    %4 = stablehlo.compare GE, %1, %3, SIGNED : (tensor<i64>, tensor<i64>) -> tensor<i1>
    %5 = call @searchsorted_1(%arg1, %arg0) : (tensor<2xi64>, tensor<9xi32>) -> tensor<9xi32>
    %6 = stablehlo.reverse %arg1, dims = [0] : tensor<2xi64>
    %7 = call @searchsorted_1(%6, %arg0) : (tensor<2xi64>, tensor<9xi32>) -> tensor<9xi32>
    %8 = stablehlo.broadcast_in_dim %c, dims = [] : (tensor<i32>) -> tensor<9xi32>
    %9 = stablehlo.subtract %8, %7 : tensor<9xi32>
    %10 = call @_where(%4, %5, %9) : (tensor<i1>, tensor<9xi32>, tensor<9xi32>) -> tensor<9xi32>
    return %10 : tensor<9xi32>
  }
  func.func private @searchsorted_1(%arg0: tensor<2xi64>, %arg1: tensor<9xi32>) -> tensor<9xi32> {
    %0 = stablehlo.convert %arg1 : (tensor<9xi32>) -> tensor<9xi64>
    %1 = call @_searchsorted_scan_impl_2(%arg0, %0) : (tensor<2xi64>, tensor<9xi64>) -> tensor<9xi32>
    return %1 : tensor<9xi32>
  }
  func.func private @_searchsorted_scan_impl_2(%arg0: tensor<2xi64>, %arg1: tensor<9xi64>) -> tensor<9xi32> {
    %0 = call @_searchsorted_scan_impl_3(%arg0, %arg1) : (tensor<2xi64>, tensor<9xi64>) -> tensor<9xi32>
    return %0 : tensor<9xi32>
  }
  func.func private @_searchsorted_scan_impl_3(%arg0: tensor<2xi64>, %arg1: tensor<9xi64>) -> tensor<9xi32> {
    %c = stablehlo.constant dense<1> : tensor<i64>
    %c_0 = stablehlo.constant dense<2> : tensor<i64>
    %c_1 = stablehlo.constant dense<0> : tensor<i64>
    %c_2 = stablehlo.constant dense<2> : tensor<ui32>
    %c_3 = stablehlo.constant dense<0> : tensor<ui32>
    %0 = stablehlo.broadcast_in_dim %c_3, dims = [] : (tensor<ui32>) -> tensor<9xui32>
    %1 = stablehlo.broadcast_in_dim %c_2, dims = [] : (tensor<ui32>) -> tensor<9xui32>
    %2:5 = stablehlo.while(%iterArg = %arg0, %iterArg_4 = %arg1, %iterArg_5 = %c_1, %iterArg_6 = %0, %iterArg_7 = %1) : tensor<2xi64>, tensor<9xi64>, tensor<i64>, tensor<9xui32>, tensor<9xui32>
    cond {
      %4 = stablehlo.compare LT, %iterArg_5, %c_0, SIGNED : (tensor<i64>, tensor<i64>) -> tensor<i1>
      stablehlo.return %4 : tensor<i1>
    } do {
      %4:2 = func.call @closed_call_4(%iterArg, %iterArg_4, %iterArg_6, %iterArg_7) : (tensor<2xi64>, tensor<9xi64>, tensor<9xui32>, tensor<9xui32>) -> (tensor<9xui32>, tensor<9xui32>)
      %5 = stablehlo.add %iterArg_5, %c : tensor<i64>
      stablehlo.return %iterArg, %iterArg_4, %5, %4#0, %4#1 : tensor<2xi64>, tensor<9xi64>, tensor<i64>, tensor<9xui32>, tensor<9xui32>
    }
    %3 = stablehlo.convert %2#4 : (tensor<9xui32>) -> tensor<9xi32>
    return %3 : tensor<9xi32>
  }
  func.func private @closed_call_4(%arg0: tensor<2xi64>, %arg1: tensor<9xi64>, %arg2: tensor<9xui32>, %arg3: tensor<9xui32>) -> (tensor<9xui32>, tensor<9xui32>) {
    %c = stablehlo.constant dense<2> : tensor<i64>
    %0 = stablehlo.subtract %arg3, %arg2 : tensor<9xui32>
    %1 = call @floor_divide(%0, %c) : (tensor<9xui32>, tensor<i64>) -> tensor<9xui32>
    %2 = stablehlo.add %arg2, %1 : tensor<9xui32>
    %3 = stablehlo.broadcast_in_dim %2, dims = [0] : (tensor<9xui32>) -> tensor<9x1xui32>
    %4 = "stablehlo.gather"(%arg0, %3) <{dimension_numbers = #stablehlo.gather<offset_dims = [1], start_index_map = [0], index_vector_dim = 1>, slice_sizes = array<i64: 1>}> : (tensor<2xi64>, tensor<9x1xui32>) -> tensor<9x1xi64>
    %5 = stablehlo.reshape %4 : (tensor<9x1xi64>) -> tensor<9xi64>
    %6 = stablehlo.compare LT, %arg1, %5, SIGNED : (tensor<9xi64>, tensor<9xi64>) -> tensor<9xi1>
    %7 = stablehlo.select %6, %arg2, %2 : tensor<9xi1>, tensor<9xui32>
    %8 = stablehlo.select %6, %2, %arg3 : tensor<9xi1>, tensor<9xui32>
    return %7, %8 : tensor<9xui32>, tensor<9xui32>
  }
  func.func private @_where(%arg0: tensor<i1>, %arg1: tensor<9xi32>, %arg2: tensor<9xi32>) -> tensor<9xi32> {
    %0 = stablehlo.select %arg0, %arg1, %arg2 : tensor<i1>, tensor<9xi32>
    return %0 : tensor<9xi32>
  }
  func.func private @_unique_sorted_mask(%arg0: tensor<9xi32>) -> (tensor<9xi32>, tensor<9xi1>) {
    %c = stablehlo.constant dense<1> : tensor<i32>
    %c_0 = stablehlo.constant dense<false> : tensor<i1>
    %c_1 = stablehlo.constant dense<true> : tensor<i1>
    %c_2 = stablehlo.constant dense<9> : tensor<i64>
    %c_3 = stablehlo.constant dense<0> : tensor<i64>
    %0 = stablehlo.reshape %arg0 : (tensor<9xi32>) -> tensor<9x1xi32>
    %1 = stablehlo.transpose %0, dims = [1, 0] : (tensor<9x1xi32>) -> tensor<1x9xi32>
    %2 = stablehlo.reverse %1, dims = [0] : tensor<1x9xi32>
    %3 = call @lexsort(%2) : (tensor<1x9xi32>) -> tensor<9xi64>
    %4 = stablehlo.broadcast_in_dim %c_3, dims = [] : (tensor<i64>) -> tensor<9xi64>
    %5 = stablehlo.compare LT, %3, %4, SIGNED : (tensor<9xi64>, tensor<9xi64>) -> tensor<9xi1>
    %6 = stablehlo.broadcast_in_dim %c_2, dims = [] : (tensor<i64>) -> tensor<9xi64>
    %7 = stablehlo.add %3, %6 : tensor<9xi64>
    %8 = stablehlo.select %5, %7, %3 : tensor<9xi1>, tensor<9xi64>
    %9 = stablehlo.convert %8 : (tensor<9xi64>) -> tensor<9xi32>
    %10 = stablehlo.broadcast_in_dim %9, dims = [0] : (tensor<9xi32>) -> tensor<9x1xi32>
    %11 = "stablehlo.gather"(%arg0, %10) <{dimension_numbers = #stablehlo.gather<collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1>, slice_sizes = array<i64: 1>}> : (tensor<9xi32>, tensor<9x1xi32>) -> tensor<9xi32>
    %12 = stablehlo.broadcast_in_dim %c_1, dims = [] : (tensor<i1>) -> tensor<9xi1>
    %13 = stablehlo.slice %11 [1:9] : (tensor<9xi32>) -> tensor<8xi32>
    %14 = stablehlo.slice %11 [0:8] : (tensor<9xi32>) -> tensor<8xi32>
    %15 = stablehlo.compare NE, %13, %14, SIGNED : (tensor<8xi32>, tensor<8xi32>) -> tensor<8xi1>
    %16 = stablehlo.reduce(%15 init: %c_0) applies stablehlo.or across dimensions = [] : (tensor<8xi1>, tensor<i1>) -> tensor<8xi1>
    %17 = stablehlo.broadcast_in_dim %c, dims = [] : (tensor<i32>) -> tensor<1xi32>
    %18 = "stablehlo.scatter"(%12, %17, %16) <{indices_are_sorted = true, scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [0], scatter_dims_to_operand_dims = [0]>, unique_indices = true}> ({
    ^bb0(%arg1: tensor<i1>, %arg2: tensor<i1>):
      stablehlo.return %arg2 : tensor<i1>
    }) : (tensor<9xi1>, tensor<1xi32>, tensor<8xi1>) -> tensor<9xi1>
    return %11, %18 : tensor<9xi32>, tensor<9xi1>
  }
  func.func private @lexsort(%arg0: tensor<1x9xi32>) -> tensor<9xi64> {
    %0 = stablehlo.slice %arg0 [0:1, 0:9] : (tensor<1x9xi32>) -> tensor<1x9xi32>
    %1 = stablehlo.reshape %0 : (tensor<1x9xi32>) -> tensor<9xi32>
    %2 = stablehlo.iota dim = 0 : tensor<9xi64>
    %3:2 = "stablehlo.sort"(%1, %2) <{dimension = 0 : i64, is_stable = true}> ({
    ^bb0(%arg1: tensor<i32>, %arg2: tensor<i32>, %arg3: tensor<i64>, %arg4: tensor<i64>):
      %4 = stablehlo.compare LT, %arg1, %arg2, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %4 : tensor<i1>
    }) : (tensor<9xi32>, tensor<9xi64>) -> (tensor<9xi32>, tensor<9xi64>)
    return %3#1 : tensor<9xi64>
  }
  func.func private @cumsum(%arg0: tensor<9xi1>) -> tensor<9xi64> {
    %0 = stablehlo.convert %arg0 : (tensor<9xi1>) -> tensor<9xi64>
    %1 = call @cumsum_5(%0) : (tensor<9xi64>) -> tensor<9xi64>
    return %1 : tensor<9xi64>
  }
  func.func private @cumsum_5(%arg0: tensor<9xi64>) -> tensor<9xi64> {
    %c = stablehlo.constant dense<0> : tensor<i64>
    %0 = stablehlo.broadcast_in_dim %c, dims = [] : (tensor<i64>) -> tensor<i64>
    %1 = "stablehlo.reduce_window"(%arg0, %0) <{padding = dense<[[8, 0]]> : tensor<1x2xi64>, window_dimensions = array<i64: 9>}> ({
    ^bb0(%arg1: tensor<i64>, %arg2: tensor<i64>):
      %2 = stablehlo.add %arg1, %arg2 : tensor<i64>
      stablehlo.return %2 : tensor<i64>
    }) : (tensor<9xi64>, tensor<i64>) -> tensor<9xi64>
    return %1 : tensor<9xi64>
  }
  func.func private @clip(%arg0: tensor<9xi64>, %arg1: tensor<i64>) -> tensor<9xi64> {
    %0 = stablehlo.convert %arg1 : tensor<i64>
    %1 = stablehlo.broadcast_in_dim %0, dims = [] : (tensor<i64>) -> tensor<9xi64>
    %2 = stablehlo.maximum %1, %arg0 : tensor<9xi64>
    return %2 : tensor<9xi64>
  }
  func.func private @cumsum_6(%arg0: tensor<4xi64>) -> tensor<4xi64> {
    %0 = call @cumsum_7(%arg0) : (tensor<4xi64>) -> tensor<4xi64>
    return %0 : tensor<4xi64>
  }
  func.func private @cumsum_7(%arg0: tensor<4xi64>) -> tensor<4xi64> {
    %c = stablehlo.constant dense<0> : tensor<i64>
    %0 = stablehlo.broadcast_in_dim %c, dims = [] : (tensor<i64>) -> tensor<i64>
    %1 = "stablehlo.reduce_window"(%arg0, %0) <{padding = dense<[[3, 0]]> : tensor<1x2xi64>, window_dimensions = array<i64: 4>}> ({
    ^bb0(%arg1: tensor<i64>, %arg2: tensor<i64>):
      %2 = stablehlo.add %arg1, %arg2 : tensor<i64>
      stablehlo.return %2 : tensor<i64>
    }) : (tensor<4xi64>, tensor<i64>) -> tensor<4xi64>
    return %1 : tensor<4xi64>
  }
  func.func private @floor_divide_8(%arg0: tensor<4xi64>, %arg1: tensor<i64>) -> tensor<4xi64> {
    %c = stablehlo.constant dense<1> : tensor<i64>
    %c_0 = stablehlo.constant dense<0> : tensor<i64>
    %0 = stablehlo.broadcast_in_dim %arg1, dims = [] : (tensor<i64>) -> tensor<4xi64>
    %1 = stablehlo.divide %arg0, %0 : tensor<4xi64>
    %2 = stablehlo.sign %arg0 : tensor<4xi64>
    %3 = stablehlo.sign %arg1 : tensor<i64>
    %4 = stablehlo.broadcast_in_dim %3, dims = [] : (tensor<i64>) -> tensor<4xi64>
    %5 = stablehlo.compare NE, %2, %4, SIGNED : (tensor<4xi64>, tensor<4xi64>) -> tensor<4xi1>
    %6 = stablehlo.broadcast_in_dim %arg1, dims = [] : (tensor<i64>) -> tensor<4xi64>
    %7 = stablehlo.remainder %arg0, %6 : tensor<4xi64>
    %8 = stablehlo.broadcast_in_dim %c_0, dims = [] : (tensor<i64>) -> tensor<4xi64>
    %9 = stablehlo.compare NE, %7, %8, SIGNED : (tensor<4xi64>, tensor<4xi64>) -> tensor<4xi1>
    %10 = stablehlo.and %5, %9 : tensor<4xi1>
    %11 = stablehlo.broadcast_in_dim %c, dims = [] : (tensor<i64>) -> tensor<4xi64>
    %12 = stablehlo.subtract %1, %11 : tensor<4xi64>
    %13 = call @_where_9(%10, %12, %1) : (tensor<4xi1>, tensor<4xi64>, tensor<4xi64>) -> tensor<4xi64>
    return %13 : tensor<4xi64>
  }
  func.func private @_where_9(%arg0: tensor<4xi1>, %arg1: tensor<4xi64>, %arg2: tensor<4xi64>) -> tensor<4xi64> {
    %0 = stablehlo.select %arg0, %arg1, %arg2 : tensor<4xi1>, tensor<4xi64>
    return %0 : tensor<4xi64>
  }
  func.func private @remainder(%arg0: tensor<4xi64>, %arg1: tensor<i64>) -> tensor<4xi64> {
    %c = stablehlo.constant dense<1> : tensor<i64>
    %c_0 = stablehlo.constant dense<0> : tensor<i64>
    %0 = stablehlo.convert %arg1 : tensor<i64>
    %1 = stablehlo.compare EQ, %0, %c_0, SIGNED : (tensor<i64>, tensor<i64>) -> tensor<i1>
    %2 = call @_where_10(%1, %c, %0) : (tensor<i1>, tensor<i64>, tensor<i64>) -> tensor<i64>
    %3 = stablehlo.broadcast_in_dim %2, dims = [] : (tensor<i64>) -> tensor<4xi64>
    %4 = stablehlo.remainder %arg0, %3 : tensor<4xi64>
    %5 = stablehlo.broadcast_in_dim %c_0, dims = [] : (tensor<i64>) -> tensor<4xi64>
    %6 = stablehlo.compare NE, %4, %5, SIGNED : (tensor<4xi64>, tensor<4xi64>) -> tensor<4xi1>
    %7 = stablehlo.broadcast_in_dim %c_0, dims = [] : (tensor<i64>) -> tensor<4xi64>
    %8 = stablehlo.compare LT, %4, %7, SIGNED : (tensor<4xi64>, tensor<4xi64>) -> tensor<4xi1>
    %9 = stablehlo.compare LT, %2, %c_0, SIGNED : (tensor<i64>, tensor<i64>) -> tensor<i1>
    %10 = stablehlo.broadcast_in_dim %9, dims = [] : (tensor<i1>) -> tensor<4xi1>
    %11 = stablehlo.compare NE, %8, %10, UNSIGNED : (tensor<4xi1>, tensor<4xi1>) -> tensor<4xi1>
    %12 = stablehlo.and %11, %6 : tensor<4xi1>
    %13 = stablehlo.broadcast_in_dim %2, dims = [] : (tensor<i64>) -> tensor<4xi64>
    %14 = stablehlo.add %4, %13 : tensor<4xi64>
    %15 = stablehlo.select %12, %14, %4 : tensor<4xi1>, tensor<4xi64>
    return %15 : tensor<4xi64>
  }
  func.func private @_where_10(%arg0: tensor<i1>, %arg1: tensor<i64>, %arg2: tensor<i64>) -> tensor<i64> {
    %0 = stablehlo.select %arg0, %arg1, %arg2 : tensor<i1>, tensor<i64>
    return %0 : tensor<i64>
  }
}
